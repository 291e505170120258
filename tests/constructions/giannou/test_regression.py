import numpy as np
import pytest
import scipy.linalg
import torch
from hypothesis import given, settings
from hypothesis.strategies import integers, sampled_from

from icl.constructions.giannou.regression import prompt_of_theorem, start, theorem4_2
from icl.errors import InputError


def problem(dim, context, seed):
    rng = np.random.default_rng(seed)
    draws = [rng.standard_normal(shape) for shape in ((context, dim), (context,), (dim,))]
    return [torch.from_numpy(draw) for draw in draws]


@settings(max_examples=25, deadline=None)
@given(integers(1, 5), integers(0, 6), integers(0, 6), sampled_from([0.0, 0.3]), integers(0, 10**6))
def test_answers_as_the_iteration_does(dim, more, steps, mu, seed):
    A, y, test = problem(dim, dim + more, seed)
    stack = theorem4_2(dim, steps, start(A, mu), mu)
    H = prompt_of_theorem(stack, A, y, test)
    out = stack(H)
    R = A.mT @ A + mu * torch.eye(dim).double()
    X = start(A, mu) * R
    for _ in range(steps):
        X = 2 * X - X @ R @ X
    answer = float(test @ X @ A.mT @ y)
    assert float(stack.block(out, "out")[0, 0]) == pytest.approx(answer, rel=1e-9, abs=1e-9)
    assert not stack.block(out, "out")[0, 1:].any()
    torch.testing.assert_close(stack.block(out, "X")[:, :dim], X, rtol=1e-9, atol=1e-9)
    for name in ("I", "A", "t", "y"):
        assert torch.equal(stack.block(out, name), stack.block(H, name))
    assert (len(stack.layers), stack.heads, stack.width, stack.neurons) == (steps + 3, 2, 4 * dim + 3, 0)


@pytest.mark.parametrize("mu", [0.0, 0.5])
def test_ends_at_scipys_least_squares(mu):
    A, y, test = problem(4, 20, 1)
    stack = theorem4_2(4, 40, start(A, mu), mu)
    got = float(stack.block(stack(prompt_of_theorem(stack, A, y, test)), "out")[0, 0])
    stacked = np.vstack([A.numpy(), np.sqrt(mu) * np.eye(4)])
    w = scipy.linalg.lstsq(stacked, np.concatenate([y.numpy(), np.zeros(4)]))[0]
    assert got == pytest.approx(float(test.numpy() @ w), rel=1e-10)


def test_refuses_fewer_points_than_dimensions():
    A, y, test = problem(4, 3, 0)
    stack = theorem4_2(4, 1, 0.1)
    with pytest.raises(InputError, match="n must be at least d"):
        prompt_of_theorem(stack, A, y, test)
    with pytest.raises(InputError, match="n must be at least d"):
        start(A)
    with pytest.raises(InputError, match="epsilon"):
        theorem4_2(4, 1, 0.0)
