"""Rational weights that beat every symmetric A at d = 2, and certificates in rational numbers.

Every symmetric A is a I + h H up to a rotation, with H = diag(1, -1), and f(a I + h H) is a polynomial in a
and h^2. Where the coefficient of h^2, h^4, ... is positive for every a, f(a I + h H) >= f(a I); where besides
f(a I) - w has no real root and is positive, f is above w on all symmetric A. Sturm's theorem decides both.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from icl.theory.looped.plane import PlaneRisk
from icl.theory.looped.polynomials import (
    Polynomial,
    derivative,
    is_positive,
    plus,
    polynomial,
    real_roots,
    root_near,
    times,
    value,
)

DIGITS = (4, 6, 9)  # decimals of a witness's entries


@dataclass(frozen=True)
class Witness:
    """a I + b J with its exact risk; `roots` of f(a I) less that risk."""

    a: Fraction
    b: Fraction
    risk: Fraction
    roots: int
    below_symmetric: bool

    @property
    def entries(self) -> list[list[str]]:
        return [[str(self.a), str(-self.b)], [str(self.b), str(self.a)]]


def witness_near(plane: PlaneRisk, a: float, b: float) -> Witness:
    """Return the first rounding of (a, b) that is below every symmetric A, or the last one."""
    for digits in DIGITS:
        found = witness_at(plane, *(Fraction(round(x * 10**digits), 10**digits) for x in (a, b)))
        if found.below_symmetric:
            break
    return found


def witness_at(plane: PlaneRisk, a: Fraction, b: Fraction) -> Witness:
    risk = plane.exact(a, b)
    above = plus(plane.coefficient(0, 0), polynomial([-risk]))
    below = is_positive(above) and symmetric_best_is_scalar(plane)
    return Witness(a, b, risk, real_roots(above), below)


def symmetric_best_is_scalar(plane: PlaneRisk) -> bool:
    """Return whether the coefficient of every power of h^2 is positive for every a."""
    return all(is_positive(plane.coefficient(0, k)) for k in range(1, plane.layers + 1))


def scalar_is_best(plane: PlaneRisk, near: float) -> bool:
    """Return whether a rational certificate has the best a I as the minimum over all A, at two layers.

    f(a I + b J + h H) is f0 + f1 b^2 + f2 b^4 + k1 h^2 + k2 h^4 + m b^2 h^2, with f2, k2 and m numbers and k1
    positive for every a. So it is at least f0 + f1 b^2 + e b^4, e = f2 - m^2 / (4 k2), hence >= f0 where
    f1 >= 0 and f0 - f1^2 / (4 e) where f1 < 0; there 4 e (f0 - w) > f1^2 must hold, w the risk at a rational
    near the best a. One layer is a convex quadratic form.
    """
    if plane.layers == 1:
        return True
    f0, f1 = plane.coefficient(0, 0), plane.coefficient(1, 0)
    numbers = [plane.coefficient(*at) for at in ((2, 0), (0, 2), (1, 1))]
    if plane.layers > 2 or not symmetric_best_is_scalar(plane) or max(map(len, numbers)) > 1:
        return False
    f2, k2, m = (number[0] if number else Fraction(0) for number in numbers)
    e = f2 - min(m, Fraction(0)) ** 2 / (4 * k2)
    if e <= 0 or f1[-1] <= 0:
        return False
    if real_roots(f1) == 0:
        return is_positive(f1)
    low, high = _around_the_roots(f1)
    w = value(f0, Fraction(near).limit_denominator(10**9))
    gap: Polynomial = plus(polynomial([4 * e * c for c in plus(f0, polynomial([-w]))]), times(f1, f1), -1)
    return value(gap, low) > 0 and real_roots(gap, low, high) == 0


def _around_the_roots(p: Polynomial) -> tuple[Fraction, Fraction]:
    """Return rationals just outside the two roots of a quadratic polynomial, or around its double one."""
    (slope,) = [derivative(p)]
    vertex, bound = -slope[0] / slope[1], 1 + max(abs(c / p[-1]) for c in p)
    if value(p, vertex) == 0:
        return vertex - Fraction(1, 10**9), vertex
    low, _ = root_near(p, -bound, vertex, Fraction(1, 10**9))
    return low, root_near(p, vertex, bound, Fraction(1, 10**9))[1]
