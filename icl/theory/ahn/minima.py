"""Local minima of the risk on the set S of ahn's Theorem 4, enclosed in balls.

A search in floats names where one may be, and icl.theory.calculus proves that there is one. Variables are
a_0 .. a_{L-1}, then beta_0 .. beta_{L-2}.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flint import arb, arb_mat, arb_poly, ctx, fmpq

from icl.theory.ahn.invariant_risk import PolynomialMinimum
from icl.theory.blurred import Blurred
from icl.theory.calculus import proved

ONE, NONE = arb_poly([1]), arb_poly()
NEWTON_STEPS = 3
KNOWN = 40  # bits of a minimum's risk


@dataclass(frozen=True)
class Minimum:
    """The balls hold one critical point, a strict local minimum."""

    a: list[arb]
    beta: list[arb]
    risk: arb

    @property
    def b(self) -> list[arb]:
        """Return the scalars of B, for all layers but the last."""
        return [s / t for s, t in zip(self.beta, self.a, strict=False)]

    def is_apart(self, other: Minimum) -> bool:
        pairs = zip([*self.a, *self.beta], [*other.a, *other.beta], strict=True)
        return any(not x.overlaps(y) for x, y in pairs)


class Jet:
    """A polynomial in s whose coefficients depend on the variables, with its first and second derivatives."""

    def __init__(self, value: arb_poly, first: list[arb_poly], second: list[list[arb_poly]]) -> None:
        self.value, self.first, self.second = value, first, second

    def __mul__(self, other: Jet) -> Jet:
        x, y, V = self, other, range(len(self.first))
        first = [x.first[i] * y.value + x.value * y.first[i] for i in V]
        second = [
            [
                x.second[i][j] * y.value
                + x.value * y.second[i][j]
                + x.first[i] * y.first[j]
                + x.first[j] * y.first[i]
                for j in range(i + 1)
            ]
            for i in V
        ]
        return Jet(x.value * y.value, first, second)

    def one_minus(self) -> Jet:
        negative = [[-x for x in row] for row in self.second]
        return Jet(ONE - self.value, [-x for x in self.first], negative)


def query(theta: Sequence[arb]) -> Jet:
    """Return q of icl.theory.ahn.critical_set at balls of the variables."""
    V, L = len(theta), (len(theta) + 1) // 2
    flat = [[NONE] * (i + 1) for i in range(V)]

    def variable(k: int) -> Jet:
        return Jet(arb_poly([theta[k]]), [ONE if i == k else NONE for i in range(V)], flat)

    q = p = Jet(ONE, [NONE] * V, flat)
    s = Jet(arb_poly([0, 1]), [NONE] * V, flat)
    for layer in range(L):
        at = s * p * p
        q *= (variable(layer) * at).one_minus()
        if layer < L - 1:
            p *= (variable(L + layer) * at).one_minus()
    return q


def derivatives(moments: Sequence[fmpq], theta: Sequence[arb]) -> tuple[arb, arb_mat, arb_mat]:
    """Return the risk E tr q(S_n)^2, its gradient and its Hessian."""
    q, V = query(theta), range(len(theta))

    def mean(poly: arb_poly) -> arb:
        return sum((c * m for c, m in zip(poly.coeffs(), moments, strict=False)), arb(0))

    slope = arb_mat([[2 * mean(q.value * q.first[i])] for i in V])
    bend = [
        [2 * mean(q.first[i] * q.first[j] + q.value * q.second[max(i, j)][min(i, j)]) for j in V] for i in V
    ]
    return mean(q.value * q.value), slope, arb_mat(bend)


def enclosed(moments: Sequence[fmpq], start: Sequence[float]) -> Minimum | None:
    """Return the minimum near these numbers, None where balls have too few bits to prove one."""
    theta = [arb(x) for x in start]
    try:
        for _ in range(NEWTON_STEPS):
            theta = [x.mid() for x in _newton(moments, theta)]
        after = _newton(moments, theta)
    except ZeroDivisionError:  # a Hessian that may be singular
        return None
    radii = [4 * abs(y - x).upper() + abs(x) * arb(2) ** -ctx.prec for x, y in zip(theta, after, strict=True)]
    inside = proved(lambda at: derivatives(moments, at)[1:], theta, radii)
    L = (len(theta) + 1) // 2
    return Minimum(inside[:L], inside[L:], derivatives(moments, inside)[0]) if inside else None


def minimum(moments: Sequence[fmpq], near: PolynomialMinimum) -> Minimum:
    """Return the minimum near what a search found."""
    found = enclosed(moments, [*near.a_L.tolist(), *near.beta_L.tolist()])
    if found is None or found.risk.rel_accuracy_bits() < KNOWN:
        raise Blurred
    return found


def _newton(moments: Sequence[fmpq], at: Sequence[arb]) -> list[arb]:
    _, slope, bend = derivatives(moments, at)
    step = bend.solve(slope)
    return [x - step[k, 0] for k, x in enumerate(at)]
