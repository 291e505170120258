from __future__ import annotations

import numpy as np
import pytest
import torch

from icl.checks.xie import yq_lsa
from icl.checks.xie.initial_guess import law_around
from icl.checks.xie.yq_lsa import ExactRisk, descent_from, loaded, predictor, read_in
from icl.models import LinearTransformer, YqLSA
from icl.random import generator


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
