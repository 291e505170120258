from random import Random

import numpy as np
import pytest
import torch
from flint import fmpq

from icl.tasks.expected_traces import sparse_a_risk
from icl.theory.ahn.forward import positive
from icl.theory.ahn.invariant_risk import InvariantRisk
from icl.theory.ahn.two_layer_certificate import (
    best_pair,
    certify,
    excess,
    inner_products,
    pivots_of,
    sum_of_squares,
)
from icl.theory.rationals import identity, matrix, reflection


@pytest.mark.parametrize(("dim", "context"), [(2, 5), (3, 100), (4, 2)])
def test_a_sum_of_squares_is_found_and_no_other_weights_are_lower(dim, context):
    """Compare with the risk at weights of other sizes than the points of the certificate have."""
    found = certify(dim, context, Random(1))
    assert set(found.identity) == {0} and all(x > 0 for G in found.grams for x in pivots_of(G))
    assert [len(pivots_of(G)) for G in found.grams] == [4, 8, 8]
    for G in found.grams:
        assert np.linalg.eigvalsh(np.array([[float(x) for x in row] for row in G.tolist()]))[0] > 0
    rng, least = np.random.default_rng(1), InvariantRisk(dim, context, 2).optimum()
    assert float(best_pair(dim, context)[0]) == pytest.approx(least.risk, rel=1e-10)
    A = rng.standard_normal((50, 2, dim, dim)) * rng.uniform(0.1, 3, (50, 1, 1, 1))
    eye = torch.eye(dim, dtype=torch.float64)
    assert float(sparse_a_risk(torch.from_numpy(A), eye, eye, context).min()) > least.risk


def test_a_point_that_is_not_the_best_has_no_certificate(monkeypatch):
    from icl.theory.ahn import two_layer_certificate

    least, c_1, c_2 = best_pair(2, 5)
    monkeypatch.setattr(two_layer_certificate, "best_pair", lambda *_: (least, c_1 * fmpq(1001, 1000), c_2))
    found = certify(2, 5, Random(0))
    assert set(found.identity) != {0}


def test_products_and_the_rest_are_invariant():
    rng = Random(0)
    A, B, R = positive(rng, 3, 3), positive(rng, 3, 3), reflection(positive(rng, 3, 1))
    c_1, c_2, least = fmpq(3, 2), fmpq(1, 3), fmpq(1, 5)
    assert inner_products(A, B, c_1, c_2) == inner_products(R * A * R, R * B * R, c_1, c_2)
    assert excess(A, B, 7, least) == excess(R * A * R, R * B * R, 7, least)
    grams = [identity(4), identity(8), identity(8)]
    diagonal = [x for x in inner_products(A, B, c_1, c_2)]
    places = [0, 4, 7, 9]
    assert sum_of_squares(grams, A, B, c_1, c_2) > sum(diagonal[k] for k in places)


def test_pivots_tell_a_definite_matrix():
    assert pivots_of(matrix([[2, 1], [1, 2]])) == [2, fmpq(3, 2)]
    assert pivots_of(matrix([[1, 2], [2, 1]])) == [1, -3]
    assert pivots_of(matrix([[0, 1], [1, 0]])) == [0]
