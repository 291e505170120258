"""giannou's transformer and its constructions against their definitions: matrices V, K and Q written out."""

import pytest
from flint import arb, arb_mat, fmpq, fmpq_mat

from icl.theory.blurred import Blurred
from icl.theory.giannou.columns import Head, balls, distance, forward, near, width
from icl.theory.rationals import identity, matrix

SIZES = {"a": 2, "b": 2, "c": 1}


def rows_of(name):
    block, _, index = name.partition("[")
    start = sum(list(SIZES.values())[: list(SIZES).index(block)])
    return [start + int(index[:-1])] if index else [start + i for i in range(SIZES[block])]


def written_out(value, key, query):
    """Return V, K and Q as P x P matrices; K and Q bring what they read to the topmost rows."""
    V, K, Q = (fmpq_mat(5, 5) for _ in range(3))
    for block, sources in value.items():
        for name, c in sources.items():
            for to, of in zip(rows_of(block), rows_of(name), strict=True):
                V[to, of] += c
    for W, sources in ((K, key), (Q, query)):
        for name, c in sources.items():
            for to, of in enumerate(rows_of(name)):
                W[to, of] += c
    return V, K, Q


def state(columns=3):
    H = fmpq_mat(5, columns, [fmpq((7 * i * i + 3 * i + 1) % 11 - 5, 4) for i in range(5 * columns)])
    rows = H.tolist()
    return H, {name: fmpq_mat([rows[i] for i in rows_of(name)]) for name in SIZES}


def test_a_layer_is_h_plus_v_h_times_k_h_transposed_times_q_h():
    heads = [
        ({"a": {"b": 2, "a": fmpq(1, 3)}}, {"a": 1, "b": -1}, {"b": 1}),
        ({"c": {"b[1]": 3}, "b": {"a": -1}}, {"c": 1}, {"a[0]": fmpq(1, 2)}),
    ]
    H, blocks = state()
    expected = H
    for head in heads:
        V, K, Q = written_out(*head)
        expected += V * H * (K * H).transpose() * (Q * H)
    found = forward(tuple(Head(*head) for head in heads), blocks)
    assert matrix([row for name in SIZES for row in found[name].tolist()]) == expected
    assert width(blocks) == 5 and distance(found, found) == 0
    assert distance({"a": identity(2)}, {"a": fmpq_mat(2, 2, [1, -3, 0, 1])}) == 3


def test_a_rational_near_a_ball_is_near_it():
    _, blocks = state()
    for name, block in near(balls(blocks), bits=20).items():
        largest = max(map(abs, blocks[name].entries()))
        assert all(abs(x) <= largest / 2**19 for x in (block - blocks[name]).entries())
    with pytest.raises(Blurred):
        near({"a": arb_mat([[arb(1, 2)]])})
    with pytest.raises(Blurred):
        near({"a": arb_mat([[arb(2) ** 20_000]])})
