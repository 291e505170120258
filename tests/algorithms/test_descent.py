import numpy as np
import pytest
import torch
from scipy.special import eval_chebyt, roots_chebyt

from icl.algorithms import GDPlusPlus, GradientDescent, chebyshev_steps
from icl.models import LinearTransformer, SparseA, SparseAB
from icl.random import generator
from icl.tasks import LinearRegression

SEEDS = [0, 1]
ETA = torch.tensor([[0.3, 0.7, 1.1], [0.5, 0.2, 0.9]], dtype=torch.float64)
GAMMA = torch.tensor([[0.2, 0.35], [0.4, -0.1]], dtype=torch.float64)


def draw(read_out=-1, noise=0.0):
    law = LinearRegression(5, 7, task_covariance="inverse", read_out=read_out, label_noise=noise).law(SEEDS)
    return law, law.token_prompts([generator(seed, "check") for seed in SEEDS], 12)


@pytest.mark.parametrize("preconditioned", [False, True])
@pytest.mark.parametrize("noise", [0.0, 0.5])
@pytest.mark.parametrize("plus_plus", [False, True])
def test_they_are_what_the_stacks_8_and_11_compute(preconditioned, noise, plus_plus):
    law, prompt = draw(noise=noise)
    Sigma = law.Sigma_RDD if preconditioned else None
    P = torch.linalg.inv(law.Sigma_RDD) if preconditioned else torch.eye(5).double().expand(2, 5, 5)
    A = ETA[:, :, None, None] * P[:, None]
    if plus_plus:
        method, family, tolerance = GDPlusPlus(ETA, GAMMA, 3, Sigma), SparseAB(5, 3), 1e-10
        family.load({"A": -A, "B": (GAMMA / ETA[:, :-1])[:, :, None, None] * torch.eye(5).double()})
    else:
        method, family, tolerance = GradientDescent(ETA, 3, Sigma), SparseA(5, 3), 1e-11
        family.load({"A": A})
    predicted = method.predict(prompt)
    for path, seen in (("gram", prompt.gram()), ("tokens", prompt)):
        by_model = LinearTransformer(family, path).predict(seen).detach()
        torch.testing.assert_close(predicted, by_model, rtol=tolerance, atol=tolerance / 10)


def test_the_prediction_has_no_read_out_sign():
    (_, minus), (_, plus) = draw(-1), draw(1)
    assert torch.equal(GradientDescent(0.5, 2).predict(minus), GradientDescent(0.5, 2).predict(plus))


def test_ways_to_give_step_sizes_and_plus_plus_without_moves():
    law, prompt = draw()
    still = GDPlusPlus(ETA, 0.0, 3, law.Sigma_RDD).predict(prompt)
    torch.testing.assert_close(still, GradientDescent(ETA, 3, law.Sigma_RDD).predict(prompt))
    one = GDPlusPlus(0.4, [], 1).predict(prompt)
    torch.testing.assert_close(one, GradientDescent(0.4, 1).predict(prompt))
    one = GradientDescent(0.4, 3).predict(prompt)
    for same in ([0.4] * 3, torch.full((2, 3), 0.4), torch.full((2, 1), 0.4), torch.full((1, 3), 0.4)):
        torch.testing.assert_close(GradientDescent(same, 3).predict(prompt), one, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("layers", [1, 2, 5, 12])
def test_chebyshev_steps_against_scipy_and_against_the_minimax_value(layers):
    low, high = 0.3, 4.0
    steps = np.array(chebyshev_steps(low, high, layers))
    roots = (high + low) / 2 + (high - low) / 2 * roots_chebyt(layers)[0]
    np.testing.assert_allclose(np.sort(steps), np.sort(1 / roots), rtol=1e-13)
    s = np.linspace(low, high, 4001)
    worst = np.abs(np.prod(1 - steps[:, None] * s, axis=0)).max()
    minimax = 1 / eval_chebyt(layers, (high + low) / (high - low))
    assert worst == pytest.approx(minimax, rel=1e-12)


def test_the_order_of_chebyshev_steps_is_stable():
    steps, s = np.array(chebyshev_steps(0.01, 1.0, 64)), np.linspace(0.01, 1.0, 501)
    partial = np.abs(np.cumprod(1 - steps[:, None] * s, axis=0)).max()
    ascending = np.abs(np.cumprod(1 - np.sort(steps)[::-1, None] * s, axis=0)).max()
    assert partial < 100 and ascending > 1e10
    assert chebyshev_steps(2.0, 2.0, 3) == [0.5] * 3
