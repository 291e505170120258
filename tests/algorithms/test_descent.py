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


def each(prompt, Sigma_RDD):
    """Replica, prompt, x (N, D), y (N,), query and Sigma of every prompt, in numpy."""
    z, q = prompt.context_RBNP.numpy(), prompt.query_RBP.numpy()
    for r in range(z.shape[0]):
        Sigma = np.eye(z.shape[-1] - 1) if Sigma_RDD is None else Sigma_RDD[r].numpy()
        for b in range(z.shape[1]):
            yield r, b, z[r, b, :, :-1], z[r, b, :, -1], q[r, b, :-1], Sigma


def descent_in_a_loop(prompt, Sigma_RDD, eta):
    out = np.empty(prompt.target_RB.shape)
    for r, b, x, y, x_q, Sigma in each(prompt, Sigma_RDD):
        w = np.zeros(len(x_q))
        for step in eta[r]:
            gradient = sum((w @ x_i - y_i) * x_i for x_i, y_i in zip(x, y, strict=True)) / len(y)
            w = w - step * np.linalg.solve(Sigma, gradient)
        out[r, b] = w @ x_q
    return out


def plus_plus_in_a_loop(prompt, Sigma_RDD, eta, gamma):
    """All tokens moved one by one, the query (label 0) last."""
    out = np.empty(prompt.target_RB.shape)
    for r, b, x, y, x_q, Sigma in each(prompt, Sigma_RDD):
        tokens, labels, P, n = np.vstack([x, x_q]), np.append(y, 0.0), np.linalg.inv(Sigma), len(y)
        for step, move in zip(eta[r], [*gamma[r], 0.0], strict=True):
            g = sum(labels[i] * tokens[i] for i in range(n)) / n
            S = sum(np.outer(tokens[i], tokens[i]) for i in range(n)) / n
            labels = np.array([y_i - step * g @ P @ x_i for y_i, x_i in zip(labels, tokens, strict=True)])
            tokens = np.array([x_i - move * S @ P @ x_i for x_i in tokens])
        out[r, b] = -labels[-1]
    return out


@pytest.mark.parametrize("preconditioned", [False, True])
@pytest.mark.parametrize("noise", [0.0, 0.5])
@pytest.mark.parametrize("plus_plus", [False, True])
def test_against_a_loop_and_against_the_stacks_8_and_11(preconditioned, noise, plus_plus):
    law, prompt = draw(noise=noise)
    Sigma = law.Sigma_RDD if preconditioned else None
    P = torch.linalg.inv(law.Sigma_RDD) if preconditioned else torch.eye(5).double().expand(2, 5, 5)
    A = ETA[:, :, None, None] * P[:, None]
    if plus_plus:
        method, family, tolerance = GDPlusPlus(ETA, GAMMA, 3, Sigma), SparseAB(5, 3), 1e-10
        loop = plus_plus_in_a_loop(prompt, Sigma, ETA.numpy(), GAMMA.numpy())
        family.load({"A": -A, "B": (GAMMA / ETA[:, :-1])[:, :, None, None] * torch.eye(5).double()})
    else:
        method, family, tolerance = GradientDescent(ETA, 3, Sigma), SparseA(5, 3), 1e-11
        loop = descent_in_a_loop(prompt, Sigma, ETA.numpy())
        family.load({"A": A})
    predicted = method.predict(prompt)
    np.testing.assert_allclose(predicted, loop, rtol=tolerance, atol=tolerance / 10)
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
