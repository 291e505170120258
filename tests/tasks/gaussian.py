"""Moments of a Gaussian vector with any mean."""

from collections.abc import Sequence
from typing import Any


def moment(indices: Sequence[int], mean: Any, covariance: Any) -> Any:
    """E[x_i x_j ...] for x ~ N(mean, covariance), by the pairings of the indices.

    `mean[i]` and `covariance[i][j]` may be floats, Fractions or 0-d tensors; the answer has their type.
    Each index is left alone (a factor of the mean) or paired with a later one (a factor of the covariance).
    """
    if not indices:
        return 1
    first, rest = indices[0], tuple(indices[1:])
    total = mean[first] * moment(rest, mean, covariance)
    for place, partner in enumerate(rest):
        total = total + covariance[first][partner] * moment(
            rest[:place] + rest[place + 1 :], mean, covariance
        )
    return total
