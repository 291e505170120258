"""Quantiles by their tail probability (to import scipy.stats takes half a second), and means of weighted
draws: their error, and whether they are to be believed."""

import math

import numpy as np
from scipy import special


def normal(tail: float) -> float:
    """Return z with P(Z > z) = tail."""
    return -float(special.ndtri(tail))


def student(tail: float, freedom: float) -> float:
    """Return t with P(T > t) = tail, by degrees of freedom."""
    return -float(special.stdtrit(freedom, tail))


def proportion(tail: float, count: int, of: int) -> tuple[float, float]:
    """Return Clopper and Pearson's interval for a probability: `tail` on each side, `count` of `of` seen."""
    low = float(special.betaincinv(count, of - count + 1, tail)) if count else 0.0
    high = float(special.betainccinv(count + 1, of - count, tail)) if count < of else 1.0
    return low, high


def fair_coin(level: float, tosses: int) -> int:
    """Return the least k with P(K <= k) >= level, K the heads of a fair coin."""
    k = max(math.ceil(special.bdtrik(level, tosses, 0.5)), 0)
    return k - 1 if k > 0 and special.bdtr(k - 1, tosses, 0.5) >= level else k


def stratified_error(terms_B: np.ndarray, components: int) -> float:
    """Return the standard error of the mean of weight * value: each component has its own
    draws, of which neighbours are of different components."""
    strata = [terms_B[c::components] for c in range(components)]
    return math.sqrt(sum(len(stratum) * stratum.var(ddof=1) for stratum in strata)) / len(terms_B)


def effective_size(weight_B: np.ndarray) -> float:
    """(sum w)^2 / sum w^2: how many equal weights would have this variance."""
    return float(weight_B.sum() ** 2 / np.square(weight_B).sum())


def tail_share(terms_B: np.ndarray, largest: int = 100) -> float:
    """Share of a sum that its largest terms carry; near 1 the sum says little about its expectation."""
    total = float(np.abs(terms_B).sum())
    return float(np.sort(np.abs(terms_B))[-largest:].sum()) / total if total > 0 else 0.0
