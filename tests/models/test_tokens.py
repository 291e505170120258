"""Tests of attention over tokens against a plain loop of eqs. (2)-(4), and of what is independent."""

import math

import pytest
import torch

from icl.models import tokens
from tests.theory.drawing import draw

R, B, N, P, L, H = 2, 3, 4, 3, 2, 2


@pytest.fixture
def stack():
    return draw(1, R, L, H, P, P) / 2, draw(2, R, L, H, P, P) / 2


@pytest.fixture
def prompt():
    return draw(3, R, B, N, P), draw(4, R, B, P)


def by_hand(P_LHPP, Q_LHPP, context_NP, query_P, activation, mask=True):
    """Return Z, one column a token: Z <- Z + (1/n) sum_h P Z M sigma(Z^T Q Z), M = diag(1, .., 1, 0)."""
    n = len(context_NP)
    Z = [*context_NP.tolist(), query_P.tolist()]
    for layer in range(L):
        change = [[0.0] * P for _ in Z]
        for h in range(H):
            V, Q = P_LHPP[layer, h].tolist(), Q_LHPP[layer, h].tolist()
            for i, z_i in enumerate(Z):
                scores = [sum(z_j[a] * Q[a][b] * z_i[b] for a in range(P) for b in range(P)) for z_j in Z]
                if activation == "relu":
                    scores = [max(s, 0.0) for s in scores]
                if activation == "softmax":
                    total = sum(math.exp(s) for s in scores)
                    scores = [math.exp(s) / total for s in scores]
                for j in range(n if mask else n + 1):
                    for a in range(P):
                        value = sum(V[a][b] * Z[j][b] for b in range(P))
                        change[i][a] += scores[j] * value / (1 if activation == "softmax" else n)
        Z = [[old + new for old, new in zip(z, c, strict=True)] for z, c in zip(Z, change, strict=True)]
    return Z


@pytest.mark.parametrize("mask", [True, False])
@pytest.mark.parametrize("activation", tokens.ACTIVATIONS)
def test_against_a_plain_loop(activation, mask, stack, prompt):
    out_RBP = tokens.stack_forward(*stack, *prompt, activation, mask)
    for r in range(R):
        for b in range(B):
            Z = by_hand(stack[0][r], stack[1][r], prompt[0][r, b], prompt[1][r, b], activation, mask)
            expected = torch.tensor(Z[-1], dtype=torch.float64)
            assert torch.allclose(out_RBP[r, b], expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("activation", tokens.ACTIVATIONS)
def test_causality_through_gradients(activation, prompt):
    """Differentiate: the query is no token's value, not even its own: with Q = 0 no score depends on it,
    and d out/d q = I."""
    context, query = prompt
    V = draw(5, 1, L, H, P, P).expand(R, -1, -1, -1, -1)
    query = query.clone().requires_grad_()
    out = tokens.stack_forward(V, torch.zeros_like(V), context, query, activation)
    for a in range(P):
        (grad,) = torch.autograd.grad(out[..., a].sum(), query, retain_graph=True)
        assert torch.allclose(grad, torch.eye(P).double()[a].expand_as(grad), atol=1e-14)
