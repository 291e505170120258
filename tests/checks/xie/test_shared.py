"""What xie's checks share: settings, convexity, the saturated heads, and the exact risk of y_q-LSA."""

import numpy as np
import pytest
import torch

from icl.checks.verdict import Weights
from icl.checks.xie import yq_lsa
from icl.checks.xie.convexity import violation
from icl.checks.xie.initial_guess import WithGuess, law_around, setting, worst
from icl.checks.xie.saturation import Saturation, given_heads, with_guess
from icl.checks.xie.yq_lsa import ExactRisk, descent_from, loaded, predictor, read_in
from icl.errors import InputError
from icl.models import LinearTransformer, MultiHead, YqLSA
from icl.random import generator
from icl.tasks import LinearRegression

LAW = setting(3, 4, prior_mean=[1.0, -2.0, 0.5], guess_vector=[0.0, 1.0, 0.0], guess_bias=0.7)


@pytest.mark.parametrize(
    ("dim", "mean", "norm", "expected"),
    [(3, None, None, [1, 1, 1]), (2, [3, -1], None, [3, -1]), (4, None, 6.0, [3] * 4), (4, None, 0, [0] * 4)],
)
def test_the_prior_mean_is_ones_unless_given(dim, mean, norm, expected):
    assert law_around(dim, 5, 0, mean, norm).mean_RD.tolist() == [expected]


def test_the_guess_has_norm_and_bias_one_unless_given():
    assert WithGuess(dim=4).guess_D.tolist() == [0.5] * 4 and WithGuess(dim=4).guess_bias == 1
    assert WithGuess(dim=4, guess_vector_norm=6).guess_D.tolist() == [3] * 4
    assert WithGuess(dim=2, guess_vector=[3, -1], guess_bias=-2).guess_D.tolist() == [3, -1]
    # up to a million is within the arithmetic; spread over three entries, they may come back ulps larger
    WithGuess(dim=3, prior_mean_norm=1e6, guess_vector_norm=1e6, guess_bias=1e6)


def test_violation_is_the_midpoint_against_the_mean():
    one, minus_one = torch.tensor(1.0), torch.tensor(-1.0)
    assert float(violation(torch.square, (one,), (minus_one,))) == -1
    assert float(violation(lambda x: 1 - x**2, (one,), (minus_one,))) == 1
    # a product of two arguments is not convex in both
    points = (one, one), (minus_one, minus_one)
    assert float(violation(lambda a, b: (a * b - 1) ** 2, *points)) == pytest.approx(1)
    assert float(violation(lambda a, b: 3 * a - b, *points)) == 0
    first, second = torch.tensor([0.0, 1.0, 2.0]), torch.tensor([0.0, 3.0, -2.0])  # pairs are kept apart
    assert violation(torch.square, (first,), (second,)).tolist() == [0, -1, -4]


def test_the_worst_is_the_largest_share_of_its_rounding():
    assert worst([(1e-3, 1.0), (1e-5, 1e-6), (2.0, 3.0)]) == (1e-5, 1e-6)


def test_the_heads_attain_the_convex_bound():
    case = Saturation(LAW)
    risk, gradient = case.at(*case.heads())
    assert risk == pytest.approx(case.least.value, abs=case.rounding)
    assert gradient < 1e-12
    assert [case.constructed(heads) for heads in (3, 4, 7)] == pytest.approx(
        [case.least.value] * 3, abs=1e-12
    )


def test_risks_against_sampled_prompts():
    """The saturated heads by the model's own forward pass, the gradient step by hand from the tokens."""
    case, prompt = Saturation(LAW), LAW.token_prompts([generator(0, "eval")], 50_000)
    P_HPP, Q_HPP = case.heads()
    model = MultiHead(3, 1, len(P_HPP))
    model.load({"P": P_HPP[None, None], "Q": Q_HPP[None, None]})
    loss_B = (LinearTransformer(model).predict(prompt) - prompt.target_RB)[0].detach().square()
    assert float(loss_B.mean()) == pytest.approx(case.least.value, abs=5 * float(loss_B.std()) / 50_000**0.5)
    x_BCD, y_BC = prompt.context_RBNP[0, :, :, :3], prompt.context_RBNP[0, :, :, 3]
    residual_BC = y_BC - x_BCD @ LAW.mean_RD[0]
    step_BD = LAW.mean_RD[0] + 4 / (4 + 3 + 1) * (residual_BC[..., None] * x_BCD).mean(1)
    loss_B = ((step_BD * prompt.query_RBP[0, :, :3]).sum(-1) - prompt.target_RB[0]).square()
    assert float(loss_B.mean()) == pytest.approx(case.descent_risk, abs=5 * float(loss_B.std()) / 50_000**0.5)


def test_gradient_against_differences():
    case, rng = Saturation(LAW), generator(1, "check")
    P_HPP, Q_HPP, dP, dQ = (torch.from_numpy(rng.standard_normal((2, 4, 4))) for _ in range(4))
    risk = case.risk.value_of_layer
    P, Q = P_HPP.clone().requires_grad_(), Q_HPP.clone().requires_grad_()
    gradients = torch.autograd.grad(risk(P, Q), (P, Q))
    difference = float(
        risk(P_HPP + 1e-6 * dP, Q_HPP + 1e-6 * dQ) - risk(P_HPP - 1e-6 * dP, Q_HPP - 1e-6 * dQ)
    )
    slope = float((gradients[0] * dP).sum() + (gradients[1] * dQ).sum())
    assert difference / 2e-6 == pytest.approx(slope, rel=1e-6)
    assert case.at(P_HPP, Q_HPP)[1] == pytest.approx(float(torch.stack(gradients).norm()), rel=1e-12)


@pytest.mark.parametrize("context", [1, 5, 2**60])
def test_rounding_at_covers_what_rounding_does(context):
    """At the minimiser, where risk and gradient are known, for large w* too; and not by a wide margin."""
    for norm in (1.0, 100.0):
        case = Saturation(setting(4, context, prior_mean_norm=norm))
        heads = case.heads()
        risk, gradient = case.at(*heads)
        risk_rounding, gradient_rounding = case.rounding_at(*heads)
        expected = 4 * 5 / (context + 5) + 2 * norm**2 / (4 * context + 2)
        assert abs(risk - expected) < risk_rounding < 3e-11 * case.risk.constant
        assert gradient < gradient_rounding < 1e-9 * norm**3


def test_given_heads_of_both_families():
    law = LinearRegression(2, 6, eigenvalues=[1, 1], prior_mean_norm=1.0, read_out=1).law([0, 5])
    P = torch.from_numpy(generator(0, "check").standard_normal((2, 1, 3, 3)))
    laws, P_RHPP, Q_RHPP = given_heads(Weights("full", {"P": P, "Q": 2 * P}, law), "X")
    assert len(laws) == 2 and P_RHPP.shape == Q_RHPP.shape == (2, 1, 3, 3)
    assert torch.equal(Q_RHPP, 2 * P_RHPP) and torch.equal(P_RHPP[:, 0], P[:, 0])
    heads = P[:, :, None].expand(2, 1, 4, 3, 3)
    laws, P_RHPP, _ = given_heads(Weights("multihead", {"P": heads, "Q": heads}, law), "X")
    assert P_RHPP.shape == (2, 4, 3, 3)


@pytest.mark.parametrize(
    ("family", "shape", "task"),
    [
        ("yq_lsa", (1, 1, 3, 3), {}),
        ("full", (1, 2, 3, 3), {}),
        ("full", (0,), {}),
        ("multihead", (1, 1, 2, 4, 4), {}),
        ("full", (1, 1, 3, 3), {"read_out": -1}),
        ("full", (1, 1, 3, 3), {"label_noise": 0.1}),
        ("full", (1, 1, 3, 3), {"eigenvalues": [1, 2]}),
        ("full", (1, 1, 3, 3), {"task_covariance": [[1.0, 0.2], [0.2, 1.0]]}),
    ],
)
def test_refuses_weights_of_another_kind(family, shape, task):
    law = LinearRegression(2, 6, **({"eigenvalues": [1, 1], "read_out": 1} | task)).law([0])
    matrix = torch.zeros(shape, dtype=torch.float64)
    with pytest.raises(InputError, match=r"weights"):
        given_heads(Weights(family, {"P": matrix, "Q": matrix}, law), "Theorem X")


def test_refuses_weights_of_a_law_beyond_its_arithmetic():
    matrix = torch.zeros(1, 1, 3, 3, dtype=torch.float64)
    for beyond in ({"prior_mean_norm": 1e7}, {"guess_vector_norm": 1e7}, {"guess_bias": -1e7}):
        law = setting(2, 3, **beyond)
        with pytest.raises(InputError, match=r"^check\.weights: .* must be at most 1e\+06"):
            given_heads(Weights("full", {"P": matrix, "Q": matrix}, law), "Theorem X")


def test_with_guess_changes_the_guess_only():
    law = with_guess(LAW, torch.ones(3, dtype=torch.float64))
    assert law.guess_bias == 0 and law.guess_RD.tolist() == [[1, 1, 1]]
    assert torch.equal(law.mean_RD, LAW.mean_RD) and law.context_R == LAW.context_R


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
    assert abs(float(loss_B.mean()) - ExactRisk(law).value(model)) < 5 * error


@pytest.mark.parametrize("mean", [[1.0, -2.0, 0.5], [0.0, 0.0, 0.0]])
def test_gradient_against_finite_differences(mean):
    exact, model = ExactRisk(law_around(3, 4, 0, mean, None)), random_model(3)
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
    assert 1e-16 * norm < rounding < 1e-9 * norm


def test_the_size_of_a_gradient_has_no_cancellation():
    """Every entry's terms add up: flipping any sign, of w* too, can only make the gradient smaller."""
    law, model = law_around(3, 4, 0, [1.0, -2.0, 0.5], None), random_model(3)
    largest, rounding = 0.0, ExactRisk(law).gradient(model)[1]
    rng = np.random.default_rng(0)
    for _ in range(20):
        flipped = {
            name: matrix.detach() * torch.from_numpy(rng.choice([-1.0, 1.0], matrix.shape))
            for name, matrix in model.matrices().items()
        }
        norm, same = ExactRisk(law).gradient(loaded(3, flipped))
        assert same == rounding
        largest = max(largest, norm)
    operations = 10 + 9 + 16 + 30
    assert largest < rounding / (yq_lsa.EPSILON * operations)


def test_descent_predicts_one_step():
    w_star_D = torch.tensor([1.0, -2.0], dtype=torch.float64)
    v_D, X_DPP = predictor(descent_from(w_star_D, 0.5))
    assert v_D.tolist() == [1, -2]
    expected_PP = torch.zeros(3, 3, dtype=torch.float64)
    expected_PP[0] = expected_PP[:, 0] = torch.tensor([-0.25, 0.5, 0.25], dtype=torch.float64)
    expected_PP[0, 0] = -0.5
    torch.testing.assert_close(X_DPP[0], expected_PP)
    assert not descent_from(w_star_D, 0.5, 0 * w_star_D).v.any()


def test_the_bound_of_a_gradient_is_a_few_hundred_roundings_of_its_size():
    exact, model = ExactRisk(law_around(3, 5, 0, [1.0, -2.0, 0.5], None)), random_model(3)
    size = yq_lsa._gradient_norm(exact._of_sizes, yq_lsa._model_of_sizes(model))
    assert 10 * 2.0**-52 * size < exact.gradient(model)[1] < 300 * 2.0**-52 * size
