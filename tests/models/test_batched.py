"""Tests of the kernels against einsum. Their gradients are tested with those of every model."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from icl.models.batched import batch_last, left_matmul, matmul, right_matmul, squared_norm
from tests.theory.drawing import draw

sizes = st.integers(1, 4)


@settings(max_examples=30, deadline=None)
@given(R=sizes, I=sizes, K=sizes, J=sizes, B=sizes)
def test_products_match_einsum_and_leave_their_inputs_alone(R, I, K, J, B):  # noqa: E741
    X, Y, plus = draw(0, R, I, K, B), draw(1, R, K, J, B), draw(2, R, I, J, B)
    copies = [tensor.clone() for tensor in (X, Y, plus)]
    exact = torch.einsum("rikb,rkjb->rijb", X, Y)
    assert torch.allclose(matmul(X, Y), exact, rtol=1e-13, atol=1e-13)
    assert torch.allclose(matmul(X, Y, plus), plus + exact, rtol=1e-13, atol=1e-13)
    assert all(torch.equal(a, b) for a, b in zip((X, Y, plus), copies, strict=True))
    M = draw(3, R, I, K)
    assert torch.allclose(left_matmul(M, Y), torch.einsum("rik,rkjb->rijb", M, Y), rtol=1e-13, atol=1e-13)
    N = draw(4, R, K, J)
    assert torch.allclose(right_matmul(X, N), torch.einsum("rikb,rkj->rijb", X, N), rtol=1e-13, atol=1e-13)
    assert torch.allclose(squared_norm(X), torch.einsum("rikb,rikb->rb", X, X), rtol=1e-13)


@pytest.mark.parametrize("wanted", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)])
def test_only_the_gradients_wanted_are_made(wanted):
    inputs = [draw(s, 1, 2, 2, 3).requires_grad_(s in wanted) for s in range(3)]
    matmul(*inputs).square().sum().backward()
    assert [i for i, tensor in enumerate(inputs) if tensor.grad is not None] == list(wanted)


def test_batch_last():
    tensor = draw(0, 2, 5, 3, 4)
    moved = batch_last(tensor)
    assert moved.shape == (2, 3, 4, 5) and moved.is_contiguous()
    assert torch.equal(moved[1, :, :, 2], tensor[1, 2])
