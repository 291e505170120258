from itertools import product

import numpy as np
import pytest
import torch

from icl.tasks import moment_tensors as module
from icl.tasks.moment_tensors import moment_tensors
from tests.tasks.gaussian import moment
from tests.theory.changing import sees
from tests.theory.drawing import covariance, draw

MEAN = [0.3, -1.1]
COVARIANCE = [[1.5, 0.4], [0.4, 0.7]]


def by_quadrature(indices, mean, covariance):
    """Return Gauss-Hermite sums in two dimensions: exact for polynomials of degree below 16 in each."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(8)
    root = np.linalg.cholesky(np.array(covariance))
    total = 0.0
    for (s, u), (t, v) in product(zip(nodes, weights, strict=True), repeat=2):
        x = np.array(mean) + root @ np.array([s, t])
        total += u * v * np.prod(x[list(indices)]) / (2 * np.pi)
    return total


@pytest.mark.parametrize("order", range(7))
def test_moments_against_quadrature(order):
    for indices in product(range(2), repeat=order):
        assert moment(indices, MEAN, COVARIANCE) == pytest.approx(
            by_quadrature(indices, MEAN, COVARIANCE), rel=1e-11, abs=1e-11
        )


def test_tensors_against_pairings_over_a_leading_axis():
    mean, Sigma = draw(1, 2, 3), torch.stack([covariance(2, 3), covariance(3, 3)])
    for order, tensor in enumerate(moment_tensors(mean, Sigma), start=1):
        for b, *indices in product(range(2), *[range(3)] * order):
            exact = float(moment(indices, mean[b], Sigma[b]))
            assert float(tensor[b, *indices]) == pytest.approx(exact, rel=1e-12)


test_a_changed_term_is_seen = sees(
    module,
    ('+ _outer("ac,b->abc", covariance, mean)', "", 0, test_tensors_against_pairings_over_a_leading_axis, ()),
    ("ac,be->abce", "ab,ce->abce", 0, test_tensors_against_pairings_over_a_leading_axis, ()),
    ("covariance, second)\n    )", "covariance, covariance)\n    )", 0,
     test_tensors_against_pairings_over_a_leading_axis, ()),
    ("covariance + _outer", "covariance - _outer", 0, test_tensors_against_pairings_over_a_leading_axis, ()),
)  # fmt: skip
