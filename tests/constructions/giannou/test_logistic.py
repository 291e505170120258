from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from icl.algorithms import LogisticLoss, damped_newton
from icl.constructions.giannou import inversion, logistic
from icl.errors import InputError
from icl.models.giannou.columns import ColumnStack, Head


def problem(dim, context, seed):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((context, dim))
    A /= np.linalg.norm(A, axis=1).max()
    y = np.where(A @ rng.standard_normal(dim) >= 0, 1.0, -1.0)
    return torch.from_numpy(A), torch.from_numpy(y)


def exact_step(A, y, mu, x):
    """Return one damped step, written apart from icl.algorithms."""
    A, y, x = A.numpy(), y.numpy(), x.numpy()
    p = 1 / (1 + np.exp(y * (A @ x)))
    gradient = -(A.T @ (y * p)) / len(y) + mu * x
    hessian = A.T @ np.diag(p * (1 - p)) @ A / len(y) + mu * np.eye(len(x))
    direction = np.linalg.inv(hessian) @ gradient
    return x - 2 * np.sqrt(mu) / (2 * np.sqrt(mu) + np.sqrt(gradient @ direction)) * direction


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 4), st.integers(0, 5), st.sampled_from([0.05, 0.2, 1.0]), st.integers(0, 10**6))
def test_one_step_at_random_sizes(dim, more, mu, seed):
    A, y = problem(dim, dim + more, seed)
    radius = logistic.radius_of_iterates(mu)
    x = torch.from_numpy(np.random.default_rng(seed).standard_normal(dim))
    x = x * min(1, radius / float(x.norm()))
    by = logistic.approximations(mu, 1000, radius)
    stack = logistic.newton_step(dim, dim + more, mu, 9, by)
    H = logistic.prompt_of_theorem(stack, A, y, x)
    out = stack(H)
    got = stack.block(out, "x")
    np.testing.assert_allclose(got[:, 0].numpy(), exact_step(A, y, mu, x), atol=2e-4 / mu)
    assert bool((got == got[:, :1]).all())
    for name in ("X", "R", "I", "Z", "A", "y", "e", "s", "one"):
        torch.testing.assert_close(stack.block(out, name), stack.block(H, name), rtol=0, atol=1e-13)
    assert (stack.width, len(stack.layers), stack.heads) == (6 * dim + 4, 29, 3)
    assert stack.neurons == 1000 * dim + 2


def test_many_steps_against_scipys_minimum():
    A, y = problem(5, 26, 0)
    by = logistic.approximations(0.1, 2000, logistic.radius_of_iterates(0.1))
    stack = logistic.newton_steps(5, 26, 0.1, 8, by, 12)
    x = stack.block(stack(logistic.prompt_of_theorem(stack, A, y, torch.zeros(5))), "x")[:, 0].numpy()

    def f(x):
        return np.mean(np.logaddexp(0, -y.numpy() * (A.numpy() @ x))) + 0.05 * x @ x

    by_scipy = scipy.optimize.minimize(f, np.zeros(5), method="BFGS", options={"gtol": 1e-10}).x
    newton = damped_newton(LogisticLoss(A[None], y[None], 0.1), torch.zeros(1, 5).double()).x_BD[0].numpy()
    assert np.abs(x - by_scipy).max() < 1e-5 and np.abs(x - newton).max() < 1e-5


def test_the_prompt_holds_one_nth_to_the_last_bit():
    stack = logistic.newton_step(2, 26, 0.1, 1, logistic.approximations(0.1, 32, 3.0))
    A, y = problem(2, 26, 0)
    e = stack.block(logistic.prompt_of_theorem(stack, A, y, torch.zeros(2).double()), "e")[0]
    assert e.tolist() == [1 / 26] + [0.0] * 25


def test_iterates_stay_within_the_radius():
    for mu in (0.01, 0.1, 2.0):
        A, y = problem(4, 9, 3)
        loss, x = LogisticLoss(A[None], y[None], mu), torch.zeros(1, 4).double()
        for _ in range(20):
            x = loss.damped_step(x)
            assert float(x.norm()) <= logistic.radius_of_iterates(mu)


def test_refuses():
    by = logistic.approximations(0.1, 32, 3.0)
    with pytest.raises(InputError, match="context"):
        logistic.newton_step(4, 3, 0.1, 1, by)
    with pytest.raises(InputError, match="mu"):
        logistic.approximations(0.0, 32, 3.0)
    with pytest.raises(InputError, match="width"):
        logistic.approximations(0.1, 0, 3.0)


def test_one_layer_for_each_step_of_inversion_suffices():
    """Build depth 10 + k: X goes to the transposed inverse, and step 8 reads it transposed."""
    A, y = problem(4, 9, 2)
    by = logistic.approximations(0.1, 500, logistic.radius_of_iterates(0.1))
    printed = logistic.newton_step(4, 9, 0.1, 8, by)
    rows, identity = printed.rows, {"I": 1.0}
    restored = Head.of(rows, {"R": {"I": 1.0, "R": -1.0}}, key=identity, query=identity)
    inverse = [inversion.one_layer(rows, "R")] * 8
    inverse[-1] = replace(inverse[-1], heads=[*inverse[-1].heads, restored])
    direction = printed.layers[-4]
    transposed = Head.of(rows, {"X": identity}, key={"X": 1.0}, query={"R": 1.0})
    after = list(printed.layers[4 + 2 * 8 :])
    after[after.index(direction)] = replace(direction, heads=[transposed, direction.heads[1]])
    shallow = ColumnStack(rows, [*printed.layers[:3], *inverse, *after])
    assert len(shallow.layers) == 10 + 8
    H = logistic.prompt_of_theorem(printed, A, y, torch.tensor([0.4, -0.1, 0.2, 0.3]).double())
    torch.testing.assert_close(shallow(H), printed(H), rtol=0, atol=1e-11)
