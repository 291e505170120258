"""Polynomials with rational coefficients, lowest power first, and what is certain of their real roots."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

Polynomial = tuple[Fraction, ...]


def polynomial(coefficients: Sequence[Fraction | int]) -> Polynomial:
    """Return the coefficients without zeros at the highest powers."""
    found = [Fraction(c) for c in coefficients]
    while found and found[-1] == 0:
        found.pop()
    return tuple(found)


def value(p: Polynomial, x: Fraction) -> Fraction:
    total = Fraction(0)
    for c in reversed(p):
        total = total * x + c
    return total


def derivative(p: Polynomial) -> Polynomial:
    return polynomial([k * c for k, c in enumerate(p)][1:])


def plus(p: Polynomial, q: Polynomial, factor: Fraction | int = 1) -> Polynomial:
    """p + factor q."""
    size = max(len(p), len(q))
    padded = [[*r, *[Fraction(0)] * (size - len(r))] for r in (p, q)]
    return polynomial([a + factor * b for a, b in zip(*padded, strict=True)])


def times(p: Polynomial, q: Polynomial) -> Polynomial:
    found = [Fraction(0)] * max(len(p) + len(q) - 1, 0)
    for i, a in enumerate(p):
        for j, b in enumerate(q):
            found[i + j] += a * b
    return polynomial(found)


def real_roots(p: Polynomial, low: Fraction | None = None, high: Fraction | None = None) -> int:
    """Return how many distinct real roots lie in (low, high], by Sturm's theorem; without an end, beyond all
    bounds."""
    if not p:
        raise ValueError("the zero polynomial has every number as a root")
    chain = _sturm_chain(p)
    return _changes(chain, low, -1) - _changes(chain, high, 1)


def root_near(p: Polynomial, low: Fraction, high: Fraction, width: Fraction) -> tuple[Fraction, Fraction]:
    """Return an interval (low, high] of at most this width with the one root that (low, high] has."""
    if real_roots(p, low, high) != 1:
        raise ValueError(f"({low}, {high}] has {real_roots(p, low, high)} roots, must have 1")
    chain = _sturm_chain(p)
    while high - low > width:
        middle = (low + high) / 2
        if _changes(chain, low, -1) - _changes(chain, middle, 1) == 1:
            high = middle
        else:
            low = middle
    return low, high


def is_positive(p: Polynomial) -> bool:
    """Return whether p(x) > 0 for every real x, by Sturm's theorem."""
    return bool(p) and p[0] > 0 and real_roots(p) == 0


def _sturm_chain(p: Polynomial) -> list[Polynomial]:
    chain = [p, derivative(p)]
    while chain[-1]:
        rest = _remainder(chain[-2], chain[-1])
        # by its leading coefficient's size: a positive factor changes no sign and keeps the fractions short
        chain.append(polynomial([-c / abs(rest[-1]) for c in rest]))
    return chain[:-1]


def _remainder(p: Polynomial, q: Polynomial) -> Polynomial:
    rest = list(p)
    while len(rest) >= len(q):
        factor, shift = rest[-1] / q[-1], len(rest) - len(q)
        for k, c in enumerate(q):
            rest[shift + k] -= factor * c
        rest.pop()
    return polynomial(rest)


def _changes(chain: Sequence[Polynomial], x: Fraction | None, infinity: int) -> int:
    """Return the sign changes of the chain at x, or at infinity of this sign."""
    values = [p[-1] * infinity ** (len(p) - 1) if x is None else value(p, x) for p in chain]
    signs = [v > 0 for v in values if v != 0]
    return sum(a != b for a, b in pairwise(signs))
