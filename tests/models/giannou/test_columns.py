import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from icl.models import gram, tokens
from icl.models.giannou.columns import ColumnStack, Head, Layer, ReLU, Rows, forward


def random_layer(rng, P, heads, neurons=0):
    def draw(*shape):
        return torch.from_numpy(rng.standard_normal(shape) / P)

    relu = ReLU(draw(neurons, P), draw(P, neurons)) if neurons else None
    return Layer([Head(draw(P, P), draw(P, P), draw(P, P)) for _ in range(heads)], relu)


def by_loops(layer, H):
    """Return eqs. (3.1a) and (3.1b), a column at a time."""
    out = H.copy()
    for head in layer.heads:
        for j in range(H.shape[1]):
            for i in range(H.shape[1]):
                score = (head.K_PP.numpy() @ H[:, i]) @ (head.Q_PP.numpy() @ H[:, j])
                out[:, j] += head.V_PP.numpy() @ H[:, i] * score
    if layer.relu is not None:
        out += layer.relu.W2_PX.numpy() @ np.maximum(layer.relu.W1_XP.numpy() @ out, 0)
    return out


def test_a_layer_is_eq_3_1():
    rng = np.random.default_rng(0)
    H, layer = rng.standard_normal((3, 4)), random_layer(rng, 3, 2, 5)
    np.testing.assert_allclose(forward(layer, torch.from_numpy(H)).numpy(), by_loops(layer, H), rtol=1e-12)


def token_form(layer, columns):
    """Return the heads as (P, Q), both (1, 1, H, P, P), of icl.models.tokens and .gram: P = M V, Q = K^T Q.

    Those mask the query as a key and divide by the context: with all M columns as context and a copy of one
    of them as the query, the query becomes what that column becomes without mask or division.
    """
    P_HPP = torch.stack([columns * head.V_PP for head in layer.heads])
    Q_HPP = torch.stack([head.K_PP.mT @ head.Q_PP for head in layer.heads])
    return P_HPP[None, None], Q_HPP[None, None]


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 6), st.integers(1, 7), st.integers(1, 3), st.integers(0, 10**6))
def test_the_token_and_gram_paths_agree(P, M, heads, seed):
    rng = np.random.default_rng(seed)
    layer, H = random_layer(rng, P, heads), torch.from_numpy(rng.standard_normal((P, M)))
    P_RLHPP, Q_RLHPP = token_form(layer, M)
    context = H.mT.expand(1, M, M, P)
    by_tokens = tokens.stack_forward(P_RLHPP, Q_RLHPP, context, H.mT[None])[0].mT
    torch.testing.assert_close(forward(layer, H), by_tokens, rtol=1e-11, atol=1e-11)
    G = (H @ H.mT / M)[None, :, :, None].expand(1, P, P, M)
    out = torch.eye(P, dtype=torch.float64)
    for row in range(P):
        got = gram.stack_output(P_RLHPP, Q_RLHPP, G, H[None, :, None], out[None, row])[0, 0]
        torch.testing.assert_close(forward(layer, H)[row], got, rtol=1e-11, atol=1e-11)


def test_blocks_of_rows():
    rows = Rows({"X": 2, "y": 1, "I": 2})
    assert rows.width == 5 and rows["I"] == slice(3, 5) and rows["I[1]"] == slice(4, 5)
    written = rows.select({"X": {"I": 2.0}, "y": {"I[1]": -1.0}})
    expected = np.zeros((5, 5))
    expected[0, 3] = expected[1, 4] = 2
    expected[2, 4] = -1
    np.testing.assert_array_equal(written.numpy(), expected)
    np.testing.assert_array_equal(rows.gather({"I": 3.0}).numpy()[:2, 3:], 3 * np.eye(2))
    with pytest.raises(ValueError, match="no such block"):
        rows["Z"]
    with pytest.raises(ValueError, match="different sizes"):
        rows.select({"X": {"y": 1.0}})


def test_a_stack_counts_and_fills():
    rng, rows = np.random.default_rng(1), Rows({"X": 2, "y": 1})
    stack = ColumnStack(rows, [random_layer(rng, 3, 1), random_layer(rng, 3, 2, 4)])
    assert (stack.width, stack.heads, stack.neurons) == (3, 2, 4)
    H = stack.fill({"X": torch.eye(2).double(), "y": torch.ones(1, 3).double()}, 3)
    np.testing.assert_array_equal(H.numpy(), [[1, 0, 0], [0, 1, 0], [1, 1, 1]])
    states = stack.every_layer(H)
    assert len(states) == 3 and torch.equal(states[-1], stack(H))
    assert torch.equal((stack + stack)(H), stack(stack(H)))
    assert torch.equal(stack.block(H, "y"), torch.ones(1, 3).double())
    with pytest.raises(ValueError, match="different rows"):
        stack + ColumnStack(Rows({"Z": 3}), [random_layer(rng, 3, 1)])


def test_shapes_are_checked():
    rng = np.random.default_rng(1)
    with pytest.raises(ValueError, match="a head has"):
        ColumnStack(Rows({"X": 2}), [random_layer(rng, 3, 1)])
    with pytest.raises(ValueError, match="W1 and W2"):
        ColumnStack(Rows({"X": 2}), [Layer([], ReLU(torch.ones(3, 2), torch.ones(2, 4)))])
