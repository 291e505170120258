import math

import pytest
import torch

from icl.tasks.distances import distance_to_identity, inverse_symmetric_root, symmetric_root
from tests.theory.drawing import draw


def test_known_distances_and_nan_of_zero_in_a_batch():
    eigenvalues = torch.tensor([1, 1, 0.25, 0.0625, 1], dtype=torch.float64)
    assert float(distance_to_identity(torch.diag(1 / eigenvalues))) == pytest.approx(0.784, abs=5e-4)
    assert float(distance_to_identity(3 * torch.eye(5))) == 0
    assert float(distance_to_identity(torch.tensor([[0.0, 1.0], [-1.0, 0.0]]))) == 1
    M = draw(0, 2, 3, 4, 4)
    M[1, 2] = 0
    distances = distance_to_identity(M)
    assert math.isnan(float(distances[1, 2]))
    assert torch.equal(distances[0, 1], distance_to_identity(M[0, 1]))


def test_roots_also_of_a_singular_covariance():
    factor = draw(3, 2, 5, 5)
    Sigma = factor @ factor.mT
    root, inverse = symmetric_root(Sigma), inverse_symmetric_root(Sigma)
    assert torch.allclose(root @ root, Sigma, rtol=1e-11)
    assert torch.allclose(root, root.mT)
    assert torch.allclose(inverse @ Sigma @ inverse, torch.eye(5, dtype=torch.float64).expand(2, 5, 5))
    flat = torch.diag(torch.tensor([1.0, 0.0], dtype=torch.float64))
    assert torch.equal(symmetric_root(flat), flat)
