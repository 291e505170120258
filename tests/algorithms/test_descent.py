import numpy as np
import pytest
import torch
from scipy.special import eval_chebyt, roots_chebyt

from icl.algorithms import GradientDescent, chebyshev_steps
from icl.models import LinearTransformer, SparseA
from icl.random import generator
from icl.tasks import LinearRegression

SEEDS = [0, 1]
ETA = torch.tensor([[0.3, 0.7, 1.1], [0.5, 0.2, 0.9]], dtype=torch.float64)


def draw(read_out=-1, noise=0.0):
    law = LinearRegression(5, 7, task_covariance="inverse", read_out=read_out, label_noise=noise).law(SEEDS)
    return law, law.token_prompts([generator(seed, "check") for seed in SEEDS], 12)


@pytest.mark.parametrize("preconditioned", [False, True])
@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_it_is_what_the_stack_8_computes(preconditioned, noise):
    law, prompt = draw(noise=noise)
    P = torch.linalg.inv(law.Sigma_RDD) if preconditioned else torch.eye(5).double().expand(2, 5, 5)
    family = SparseA(5, 3)
    family.load({"A": ETA[:, :, None, None] * P[:, None]})
    predicted = GradientDescent(ETA, 3, law.Sigma_RDD if preconditioned else None).predict(prompt)
    for path, seen in (("gram", prompt.gram()), ("tokens", prompt)):
        by_model = LinearTransformer(family, path).predict(seen).detach()
        torch.testing.assert_close(predicted, by_model, rtol=1e-11, atol=1e-12)


def test_the_prediction_has_no_read_out_sign():
    (_, minus), (_, plus) = draw(-1), draw(1)
    assert torch.equal(GradientDescent(0.5, 2).predict(minus), GradientDescent(0.5, 2).predict(plus))


def test_ways_to_give_step_sizes():
    _, prompt = draw()
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
