"""Moments of Gaussian observations by their pairings. Q systems, T observations, K index tuples."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from icl.theory.dynamical_system import Covariances


def conditional(C_QTT: Tensor, index_KO: Tensor) -> Tensor:
    """Return (Q, K) E[product of y at each tuple of times] given C, by its pairings."""
    total = C_QTT.new_zeros(len(C_QTT), len(index_KO))
    for pairing in pairings(list(range(index_KO.shape[1]))):
        term = torch.ones_like(total)
        for first, second in pairing:
            term = term * C_QTT[:, index_KO[:, first], index_KO[:, second]]
        total = total + term
    return total


def pairings(places: list[int]) -> Iterator[list[tuple[int, int]]]:
    """Yield all ways of splitting the places into pairs: 1, 3 and 15 of them."""
    if not places:
        yield []
        return
    first, rest = places[0], places[1:]
    for partner in rest:
        for others in pairings([place for place in rest if place != partner]):
            yield [(first, partner), *others]


def odd_tuples(rng: np.random.Generator, T: int, order: int, count: int) -> Tensor:
    """Draw (K, order) places 0 .. T - 1 of the times 1 .. T, the times' sum odd."""
    index_KO = rng.integers(T, size=(count, order))
    even_K = (index_KO + 1).sum(1) % 2 == 0
    index_KO[even_K, 0] += np.where(index_KO[even_K, 0] < T - 1, 1, -1)
    return torch.from_numpy(index_KO)


def largest_share(exact: Covariances, index_KO: Tensor) -> float:
    """Return the largest mean as a share of what its terms would add up to with all signs equal."""
    values_QK = conditional(exact.covariance_QTT, index_KO)
    sizes_QK = conditional(exact.covariance_QTT.abs(), index_KO)
    scale_K = exact.weight_Q.abs() @ sizes_QK
    return float(((exact.weight_Q @ values_QK).abs() / scale_K).max())
