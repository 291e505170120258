"""Quantiles by their tail probability, from scipy.special: scipy.stats takes half a second to import."""

from __future__ import annotations

import math

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
