import numpy as np
import pytest
import torch

from icl.theory import two_layer_certificate
from icl.theory.ahn.invariant_risk import InvariantRisk
from icl.theory.expected_traces import sparse_a_risk
from icl.theory.two_layer_certificate import certify


@pytest.mark.parametrize(("dim", "context"), [(3, 4), (5, 20), (2, 100_000)])
def test_no_other_weights_are_lower(dim, context):
    """Compare with the risk at weights of other sizes than the points of the certificate have."""
    found = certify(dim, context, np.random.default_rng(0))
    rng, least = np.random.default_rng(1), InvariantRisk(dim, context, 2).optimum()
    assert all(np.linalg.eigvalsh(G)[0] > 0 for G in found.grams) and found.margin > 1e6 * found.error
    A = rng.standard_normal((50, 2, dim, dim)) * rng.uniform(0.1, 3, (50, 1, 1, 1))
    eye = torch.eye(dim, dtype=torch.float64)
    assert float(sparse_a_risk(torch.from_numpy(A), eye, eye, context).min()) > least.risk


@pytest.mark.parametrize("turn", [0, 1])
def test_products_are_invariant(turn):
    rng = np.random.default_rng(turn)
    A = rng.standard_normal((1, 2, 3, 3))
    R, _ = np.linalg.qr(rng.standard_normal((3, 3)))
    kinds = [
        two_layer_certificate._kinds(np.repeat(both, 2, 0), np.array([0.4, 0.7])) for both in (A, R.T @ A @ R)
    ]
    for one, other in zip(*kinds, strict=True):
        np.testing.assert_allclose(one[0] @ one[0].T, other[0] @ other[0].T, atol=1e-10)


def test_a_point_that_is_not_the_best_has_no_certificate():
    for scale in (0.9, 1.001):
        found = certify(2, 5, np.random.default_rng(0), scale)
        assert found.error > found.margin
