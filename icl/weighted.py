"""Means of weighted draws: their error, and whether they are to be believed.

Neighbouring draws are of different components, so that every K-th of K components is a sample of its own.
"""

from __future__ import annotations

import math

import numpy as np


def stratified_error(terms_B: np.ndarray, components: int) -> float:
    """Return the standard error of the mean of weight * value: each component has its own draws."""
    strata = [terms_B[c::components] for c in range(components)]
    return math.sqrt(sum(len(stratum) * stratum.var(ddof=1) for stratum in strata)) / len(terms_B)


def effective_size(weight_B: np.ndarray) -> float:
    """(sum w)^2 / sum w^2: how many equal weights would have this variance."""
    return float(weight_B.sum() ** 2 / np.square(weight_B).sum())


def tail_share(terms_B: np.ndarray, largest: int = 100) -> float:
    """Share of a sum that its largest terms carry; near 1 the sum says little about its expectation."""
    total = float(np.abs(terms_B).sum())
    return float(np.sort(np.abs(terms_B))[-largest:].sum()) / total if total > 0 else 0.0
