"""Tests of what xie's checks share: settings, convexity, saturated heads, and the exact risk of y_q-LSA."""

import numpy as np
import pytest
import torch

from icl.checks.verdict import Weights
from icl.checks.xie.support import yq_lsa
from icl.checks.xie.support.convexity import violation
from icl.checks.xie.support.initial_guess import WithGuess, law_around, worst, xie_law
from icl.checks.xie.support.saturation import Saturation, given_heads
from icl.checks.xie.support.yq_lsa import LayerRisk, loaded, predictor, read_in
from icl.errors import InputError
from icl.models import LinearTransformer, YqLSA
from icl.random import generator
from icl.tasks import LinearRegression

LAW = xie_law(3, 4, prior_mean=[1.0, -2.0, 0.5], guess_vector=[0.0, 1.0, 0.0], guess_bias=0.7)


def test_the_prior_mean_is_ones_and_the_guess_of_norm_and_bias_one_unless_given():
    assert law_around(3, 5, 0, None, None).mean_RD.tolist() == [[1, 1, 1]]
    assert law_around(4, 5, 0, None, 0).mean_RD.tolist() == [[0] * 4]
    assert WithGuess(dim=4).guess_D.tolist() == [0.5] * 4 and WithGuess(dim=4).guess_bias == 1
    assert WithGuess(dim=4, guess_vector_norm=6).guess_D.tolist() == [3] * 4
    assert WithGuess(dim=2, guess_vector=[3, -1], guess_bias=-2).guess_D.tolist() == [3, -1]
    # up to a million is within the arithmetic; spread over three entries, they may come back ulps larger
    WithGuess(dim=3, prior_mean_norm=1e6, guess_vector_norm=1e6, guess_bias=1e6)


def test_violation_is_the_midpoint_against_the_mean():
    one = torch.tensor(1.0)  # a product of two arguments is not convex in both
    assert float(violation(lambda a, b: (a * b - 1) ** 2, (one, one), (-one, -one))) == pytest.approx(1)
    first, second = torch.tensor([0.0, 1.0, 2.0]), torch.tensor([0.0, 3.0, -2.0])  # pairs are kept apart
    assert violation(torch.square, (first,), (second,)).tolist() == [0, -1, -4]


def test_the_worst_is_the_largest_share_of_its_rounding():
    assert worst([(1e-3, 1.0), (1e-5, 1e-6), (2.0, 3.0)]) == (1e-5, 1e-6)


def test_the_gradient_is_that_in_values_and_keys():
    case = Saturation(LAW)
    P_HPP, Q_HPP = torch.from_numpy(generator(1, "check").standard_normal((2, 2, 4, 4)))
    leaves = P_HPP.clone().requires_grad_(), Q_HPP.clone().requires_grad_()
    gradients = torch.autograd.grad(case.risk.value_of_layer(*leaves), leaves)
    assert case.at(P_HPP, Q_HPP)[1] == pytest.approx(float(torch.stack(gradients).norm()), rel=1e-12)


@pytest.mark.parametrize("context", [1, 5, 2**60])
def test_rounding_at_covers_what_rounding_does(context):
    """Evaluate at the minimiser, where risk and gradient are known, for large w* too; the bound is not
    wide."""
    for norm in (1.0, 100.0):
        case = Saturation(xie_law(4, context, prior_mean_norm=norm))
        heads = case.heads()
        risk, gradient = case.at(*heads)
        risk_rounding, gradient_rounding = case.rounding_at(*heads)
        expected = 4 * 5 / (context + 5) + 2 * norm**2 / (4 * context + 2)
        assert abs(risk - expected) < risk_rounding < 3e-11 * case.risk.constant
        assert gradient < gradient_rounding < 1e-9 * norm**3


BEYOND = r"^check\.weights: .* must be at most 1e\+06"


@pytest.mark.parametrize(
    ("task", "words", "family", "shape"),
    [
        ({}, "weights", "yq_lsa", (1, 1, 3, 3)),
        *(({}, "weights", "full", shape) for shape in ((1, 2, 3, 3), (0,))),
        ({}, "weights", "multihead", (1, 1, 2, 4, 4)),
        *(
            (task, words, "full", (1, 1, 3, 3))
            for task, words in [
                ({"read_out": -1}, "weights"),
                ({"label_noise": 0.1}, "weights"),
                ({"eigenvalues": [1, 2]}, "weights"),
                ({"task_covariance": [[1.0, 0.2], [0.2, 1.0]]}, "weights"),
                *(({size: 1e7}, BEYOND) for size in ("prior_mean_norm", "guess_vector_norm")),
                ({"guess_bias": -1e7}, BEYOND),
            ]
        ),
    ],
)
def test_refuses_weights_of_another_kind(task, words, family, shape):
    law = LinearRegression(2, 6, **({"eigenvalues": [1, 1], "read_out": 1} | task)).law([0])
    matrix = torch.zeros(shape, dtype=torch.float64)
    with pytest.raises(InputError, match=words):
        given_heads(Weights(family, {"P": matrix, "Q": matrix}, law), "Theorem X")


def random_model(dim, seed=0):
    model = YqLSA(dim, 1, init_std=0.5)
    model.initialise([seed])
    return model


@pytest.mark.parametrize("dim", [1, 3])
def test_read_in_and_predictor_are_those_of_the_model(dim):
    model, law = random_model(dim), law_around(dim, 4, 0, None, None)
    torch.testing.assert_close(model.ends()[0][0].detach(), read_in(model.v.detach()[0, 0, 0]))
    prompt = law.token_prompts([generator(0, "check")], 8).gram()
    v_D, X_DPP = predictor(model)
    x_BD = prompt.query_RBP[0, :, :-1]
    expected_B = x_BD @ v_D + torch.einsum("bd,bpr,dpr->b", x_BD, prompt.gram_RBPP[0], X_DPP)
    torch.testing.assert_close(LinearTransformer(model).predict(prompt)[0].detach(), expected_B)


def test_risk_against_sampled_prompts():
    law, model = law_around(2, 3, 0, [1, -2], None), random_model(2)
    prompt = law.gram_prompts([generator(1, "eval")], 400_000)
    loss_B = (LinearTransformer(model).predict(prompt) - prompt.target_RB)[0].detach().square()
    error = float(loss_B.std()) / 400_000**0.5
    assert abs(float(loss_B.mean()) - LayerRisk(law).value(model)) < 5 * error


@pytest.mark.parametrize("mean", [[1.0, -2.0, 0.5], [0.0, 0.0, 0.0]])
def test_gradient_against_finite_differences(mean):
    exact, model = LayerRisk(law_around(3, 4, 0, mean, None)), random_model(3)
    squares = 0.0
    for name, matrix in model.matrices().items():
        for index in np.ndindex(*matrix.shape):
            values = []
            for sign in (1, -1):
                moved = {key: value.detach().clone() for key, value in model.matrices().items()}
                moved[name][index] += sign * 1e-5
                values.append(exact.value(loaded(3, moved)))
            squares += ((values[0] - values[1]) / 2e-5) ** 2
    norm, rounding = exact.gradient(model)
    assert norm == pytest.approx(squares**0.5, rel=1e-7)
    size = yq_lsa._gradient_norm(exact._of_sizes, yq_lsa._model_of_sizes(model))
    assert 1e-16 * norm < 10 * 2.0**-52 * size < rounding < 300 * 2.0**-52 * size < 1e-9 * norm


def test_the_size_of_a_gradient_has_no_cancellation():
    """Flip any sign, of w* too: every entry's terms add up, so that the gradient can only become smaller."""
    law, model = law_around(3, 4, 0, [1.0, -2.0, 0.5], None), random_model(3)
    largest, rounding = 0.0, LayerRisk(law).gradient(model)[1]
    rng = np.random.default_rng(0)
    for _ in range(20):
        flipped = {
            name: matrix.detach() * torch.from_numpy(rng.choice([-1.0, 1.0], matrix.shape))
            for name, matrix in model.matrices().items()
        }
        norm, same = LayerRisk(law).gradient(loaded(3, flipped))
        assert same == rounding
        largest = max(largest, norm)
    operations = LayerRisk(law).quadratic.longest_sum() + 16 + 30
    assert largest < rounding / (yq_lsa.EPSILON * operations)
