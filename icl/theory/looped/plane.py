"""Exact risk of one layer applied L times in two dimensions, at any A, in rationals and by a Gauss rule.

f(A) = E |(I - A^T G)^L|_F^2, G = W / n, W ~ Wishart_2(n, I). Every A is a I + b J + h H up to a rotation, J
the rotation by 90 degrees and H = diag(1, -1). Write G = s/2 I + u H + v K, K = [[0, 1], [1, 0]], p = det G.
Then M = I - A^T G has

    tr M    = 2 - a s - 2 h u,
    det M   = 1 - a s - 2 h u + (a^2 + b^2 - h^2) p,
    |M|_F^2 = 2 - 2 a s - 4 h u + (a^2 + b^2 + h^2)(s^2 - 2 p) + 4 a h s u + 4 b h s v,

and by Cayley and Hamilton M^L = P M - Q I with P, Q polynomials in trace and determinant. The direction of
(u, v) is uniform and independent of (s, p), and u^2 + v^2 = s^2/4 - p. So f is a polynomial in a, b^2, h^2.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from math import comb, factorial

from icl.theory.looped.polynomials import Polynomial, polynomial
from icl.theory.looped.weighted import WeightedRisk
from icl.theory.plane_rule import plane_rule, trace_determinant

MAX_LAYERS = 12
_NAMES = "abhspuv"
Terms = dict[tuple[int, ...], Fraction]  # coefficient by the exponents of _NAMES


class PlaneRisk:
    """f for n = `context` and L = `layers`."""

    def __init__(self, context: int, layers: int) -> None:
        if context < 1 or not 1 <= layers <= MAX_LAYERS:
            raise ValueError(f"context={context}, layers={layers}: from 1, and to {MAX_LAYERS} layers")
        self.context, self.layers = context, layers

    def exact(self, a: Fraction, b: Fraction | int = 0, h: Fraction | int = 0) -> Fraction:
        """f(a I + b J + h H)."""
        return sum(
            (c * a**i * b ** (2 * j) * h ** (2 * k) for (i, j, k), c in self.terms.items()), Fraction(0)
        )

    def coefficient(self, j: int, k: int) -> Polynomial:
        """Return the coefficient of b^(2j) h^(2k), a polynomial in a."""
        found = [Fraction(0)] * (2 * self.layers + 1)
        for (i, at_b, at_h), c in self.terms.items():
            if (at_b, at_h) == (j, k):
                found[i] += c
        return polynomial(found)

    @cached_property
    def terms(self) -> Mapping[tuple[int, int, int], Fraction]:
        """Coefficients of f by the exponents of a, b^2 and h^2."""
        found: defaultdict[tuple[int, int, int], Fraction] = defaultdict(Fraction)
        for (a, b, h, s, p, u, v), c in self._norm_of_power().items():
            if u % 2 == v % 2 == 0:
                found[a, b // 2, h // 2] += c * self._moment(s, p, u, v)
        return {powers: c for powers, c in found.items() if c}

    @cached_property
    def rule(self) -> WeightedRisk:
        """Return f as a weighted sum of squares, for any A and with its gradient."""
        return WeightedRisk(*plane_rule(self.context, 2 * self.layers), self.layers)

    def _norm_of_power(self) -> Terms:
        """|M^L|_F^2 = P^2 |M|_F^2 - 2 P Q tr M + 2 Q^2."""
        one = _term(1)
        as_, hu = _term(1, a=1, s=1), _term(2, h=1, u=1)
        trace = _sum(_term(2), as_, hu, signs=(1, -1, -1))
        determinant = _sum(
            one, as_, hu, _term(1, a=2, p=1), _term(1, b=2, p=1), _term(1, h=2, p=1),
            signs=(1, -1, -1, 1, 1, -1),
        )  # fmt: skip
        norm = _sum(_term(2), _term(2, a=1, s=1), _term(4, h=1, u=1), signs=(1, -1, -1))
        norm = _sum(norm, _term(4, a=1, h=1, s=1, u=1), _term(4, b=1, h=1, s=1, v=1))
        for name in "abh":
            norm = _sum(norm, _term(1, **{name: 2}, s=2), _term(2, **{name: 2}, p=1), signs=(1, 1, -1))
        P: Terms = one
        Q: Terms = {}
        for _ in range(self.layers - 1):
            P, Q = _sum(_product(trace, P), Q, signs=(1, -1)), _product(determinant, P)
        twice = _product(_term(2), Q)
        return _sum(
            _product(_product(P, P), norm), _product(_product(twice, P), trace), _product(twice, Q),
            signs=(1, -1, 1),
        )  # fmt: skip

    def _moment(self, s: int, p: int, u: int, v: int) -> Fraction:
        """E s^s p^p u^u v^v for even u and v."""
        k = (u + v) // 2
        circle = Fraction(factorial(u) * factorial(v), factorial(u // 2) * factorial(v // 2) * factorial(k))
        powers = (
            comb(k, t)
            * Fraction((-1) ** t, 4 ** (k - t))
            * trace_determinant(s + 2 * (k - t), p + t, self.context)
            for t in range(k + 1)
        )
        return circle / 4**k * sum(powers, Fraction(0))


def _term(coefficient: int, **powers: int) -> Terms:
    return {tuple(powers.get(name, 0) for name in _NAMES): Fraction(coefficient)}


def _sum(*parts: Terms, signs: tuple[int, ...] = ()) -> Terms:
    found: defaultdict[tuple[int, ...], Fraction] = defaultdict(Fraction)
    for part, sign in zip(parts, signs or (1,) * len(parts), strict=True):
        for powers, c in part.items():
            found[powers] += sign * c
    return {powers: c for powers, c in found.items() if c}


def _product(left: Terms, right: Terms) -> Terms:
    found: defaultdict[tuple[int, ...], Fraction] = defaultdict(Fraction)
    for at, c in left.items():
        for other, e in right.items():
            found[tuple(i + j for i, j in zip(at, other, strict=True))] += c * e
    return dict(found)
