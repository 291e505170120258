"""Moments of a Gaussian vector with any mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

MAX_ORDER = 12  # 10395 pairings; the reference is for tests and for spot values, not for assembling tensors


def moment(indices: Sequence[int], mean: Any, covariance: Any) -> Any:
    """E[x_i x_j ...] for x ~ N(mean, covariance), by the pairings of the indices.

    `mean[i]` and `covariance[i][j]` may be floats, Fractions or 0-d tensors; the answer has their type.
    Each index is left alone (a factor of the mean) or paired with a later one (a factor of the covariance).
    """
    if len(indices) > MAX_ORDER:
        raise ValueError(
            f"order {len(indices)} is too high: pairings grow as (2k-1)!!, at most order {MAX_ORDER}"
        )
    if not indices:
        return 1
    first, rest = indices[0], tuple(indices[1:])
    total = mean[first] * moment(rest, mean, covariance)
    for place, partner in enumerate(rest):
        total = total + covariance[first][partner] * moment(
            rest[:place] + rest[place + 1 :], mean, covariance
        )
    return total


def moment_tensors(mean: Tensor, covariance: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """E[x], E[x x], E[x x x], E[x x x x] as dense tensors, over any leading axes; differentiable."""
    if covariance.shape[-2:] != (mean.shape[-1], mean.shape[-1]):
        raise ValueError(
            f"covariance has shape {tuple(covariance.shape)}: must end in {(mean.shape[-1],) * 2}"
        )
    second = covariance + _outer("a,b->ab", mean, mean)
    # Stein: E[x_a F] = mean_a E[F] + sum over the entries of F of their covariance with x_a.
    third = (
        _outer("a,bc->abc", mean, second)
        + _outer("ab,c->abc", covariance, mean)
        + _outer("ac,b->abc", covariance, mean)
    )
    fourth = (
        _outer("a,bce->abce", mean, third)
        + _outer("ab,ce->abce", covariance, second)
        + _outer("ac,be->abce", covariance, second)
        + _outer("ae,bc->abce", covariance, second)
    )
    return mean, second, third, fourth


def _outer(subscripts: str, left: Tensor, right: Tensor) -> Tensor:
    factors, result = subscripts.split("->")
    first, second = factors.split(",")
    return torch.einsum(f"...{first},...{second}->...{result}", left, right)
