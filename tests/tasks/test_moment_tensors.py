from itertools import product

import pytest
import torch

from icl.tasks.moment_tensors import moment_tensors
from tests.theory.drawing import covariance, draw


def moment(indices, mean, covariance):
    """Return E[x_i x_j ...] for x ~ N(mean, covariance): each index is left alone (a factor of the mean) or
    paired with a later one (a factor of the covariance)."""
    if not indices:
        return 1
    first, rest = indices[0], tuple(indices[1:])
    total = mean[first] * moment(rest, mean, covariance)
    for place, partner in enumerate(rest):
        total = total + covariance[first][partner] * moment(
            rest[:place] + rest[place + 1 :], mean, covariance
        )
    return total


def test_tensors_against_pairings_over_a_leading_axis():
    mean, Sigma = draw(1, 2, 3), torch.stack([covariance(2, 3), covariance(3, 3)])
    for order, tensor in enumerate(moment_tensors(mean, Sigma), start=1):
        for b, *indices in product(range(2), *[range(3)] * order):
            exact = float(moment(indices, mean[b], Sigma[b]))
            assert float(tensor[b, *indices]) == pytest.approx(exact, rel=1e-12)
