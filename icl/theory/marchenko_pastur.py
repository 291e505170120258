"""Marchenko and Pastur's law: the eigenvalues of the covariance of n normal vectors as d and n grow."""

from dataclasses import dataclass
from math import comb
from typing import Any

from flint import arb, fmpq

from icl.theory.rationals import rational


@dataclass(frozen=True)
class Spectrum:
    """`ratio` is d / n; the mean is 1. Above 1 a share 1 - 1 / ratio of the eigenvalues is 0."""

    ratio: fmpq

    def moment(self, k: int) -> fmpq:
        """Return E r^k, Narayana's polynomial in the ratio."""
        terms = (fmpq(comb(k, j) * comb(k - 1, j), j + 1) * self.ratio**j for j in range(k))
        return sum(terms, fmpq(0)) if k else fmpq(1)

    @property
    def edges(self) -> tuple[arb, arb]:
        """Return the ends of the continuous part."""
        root = arb(self.ratio).sqrt()
        return (1 - root) ** 2, (1 + root) ** 2

    def resolvent(self, x: Any) -> arb:
        """Return E 1 / (x + r), x > 0."""
        return resolvent(self.ratio, x if isinstance(x, arb) else arb(rational(x)))


def eigenvalue_density(ratio: Any) -> Spectrum:
    """Return the law of the eigenvalues of S at sigma = I as d = ratio n grows."""
    return Spectrum(rational(ratio))


def resolvent(ratio: fmpq, x: arb) -> arb:
    centre, square = x + 1 - ratio, root(x, ratio)
    return 2 / (centre + square) if not centre < 0 else (square - centre) / (2 * ratio * x)


def root(x: arb, ratio: fmpq) -> arb:
    return ((x + 1 - ratio) ** 2 + 4 * x * ratio).sqrt()
