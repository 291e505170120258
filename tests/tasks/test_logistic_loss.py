import numpy as np
import pytest
import scipy.optimize
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from icl.algorithms import LogisticLoss, damped_newton


def problems(B, N, D, mu, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((B, N, D))
    A /= np.linalg.norm(A, axis=2).max(1)[:, None, None]
    y = np.where((A @ rng.standard_normal((B, D, 1)))[..., 0] >= 0, 1.0, -1.0)
    return LogisticLoss(torch.from_numpy(A), torch.from_numpy(y), mu)


def by_numpy(A, y, mu):
    """Return eq. (3.5) of one problem, term by term."""

    def f(x):
        losses = [np.logaddexp(0, -yi * (a @ x)) for a, yi in zip(A, y, strict=True)]
        return float(np.mean(losses)) + mu / 2 * x @ x

    return f


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 5), st.integers(1, 9), st.integers(0, 10**6))
def test_gradient_and_hessian_against_autograd(D, N, seed):
    loss = problems(2, N, D, 0.1, seed)
    x = torch.from_numpy(3 * np.random.default_rng(seed).standard_normal((2, D))).requires_grad_()
    (gradient,) = torch.autograd.grad(loss.value(x).sum(), x, create_graph=True)
    torch.testing.assert_close(loss.gradient(x), gradient, rtol=1e-10, atol=1e-13)
    for j in range(D):
        (row,) = torch.autograd.grad(gradient[:, j].sum(), x, retain_graph=True)
        torch.testing.assert_close(loss.hessian(x)[:, j], row, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("mu", [1e-3, 0.1, 10])
def test_values_and_minima_against_scipy(mu):
    loss = problems(3, 12, 4, mu, seed=5)
    start = torch.zeros(3, 4, dtype=torch.float64)
    x = torch.from_numpy(np.random.default_rng(1).standard_normal((3, 4)))
    newton = damped_newton(loss, start)
    assert float(newton.gradient_B.max()) <= 1e-12
    for b in range(3):
        f = by_numpy(loss.A_BND[b].numpy(), loss.y_BN[b].numpy(), mu)
        assert float(loss.value(x)[b]) == pytest.approx(f(x[b].numpy()), rel=1e-13)
        by_scipy = scipy.optimize.minimize(f, np.zeros(4), method="BFGS", options={"gtol": 1e-9})
        assert f(newton.x_BD[b].numpy()) <= by_scipy.fun + 1e-14
        np.testing.assert_allclose(newton.x_BD[b].numpy(), by_scipy.x, atol=2e-6 / min(mu, 1))


def test_each_problem_stops_for_itself():
    loss = problems(2, 12, 3, 0.1, seed=2)
    start = torch.zeros(2, 3, dtype=torch.float64)
    best = damped_newton(loss, start).x_BD
    start[0] = best[0]
    found = damped_newton(loss, start, tolerance=1e-10)
    assert found.steps_B.tolist()[0] == 0 and found.steps_B.tolist()[1] > 3
    assert torch.equal(found.x_BD[0], best[0])
    assert damped_newton(loss, start, most=2).steps_B.tolist()[1] == 2
