"""Real roots of rational polynomials, and their least values, in balls that hold one root each."""

from typing import Any

from flint import arb, fmpq, fmpq_poly


def real_roots(poly: fmpq_poly) -> list[arb]:
    """Return the distinct real roots, rising. The imaginary part of a real root is 0 exactly, and of no
    other's."""
    pairs: Any = poly.complex_roots() if poly.degree() > 0 else []
    roots = [root for root, _ in pairs]
    return sorted((root.real for root in roots if root.imag == 0), key=float)


def is_positive(poly: fmpq_poly) -> bool:
    """Return whether poly(x) > 0 for every real x."""
    return poly(0) > 0 and not real_roots(poly)


def least(poly: fmpq_poly) -> tuple[arb, arb]:
    """Return (where, value) of the least value of a polynomial that is bounded from below."""
    places = real_roots(poly.derivative())
    values = [evaluate(poly, x) for x in places]
    value = values[0]
    for other in values[1:]:
        value = value.min(other)
    return min(zip(places, values, strict=True), key=lambda pair: float(pair[1]))[0], value


def evaluate(poly: fmpq_poly, x: Any) -> Any:
    """Return the value at a ball or a rational, of its kind."""
    total = 0 * x
    for c in reversed(poly.coeffs()):
        total = total * x + c
    return total


def near(x: arb, digits: int) -> fmpq:
    """Return the middle of a ball, rounded to `digits` decimals."""
    return fmpq(round(x.mid().fmpq() * 10**digits), 10**digits)
