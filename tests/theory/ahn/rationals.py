"""The risk on S by another way: polynomials with rational coefficients, multiplied out."""

from fractions import Fraction
from itertools import zip_longest


def exact_value(risk, a_L, beta_L=()):
    """Return the risk of an InvariantRisk as a rational number, of floats at their exact binary value."""
    q, p = [Fraction(1)], [Fraction(1)]
    for a, beta in zip_longest(a_L, beta_L[: risk.layers - 1], fillvalue=0):
        step = [Fraction(0), *product(p, p)]
        q, p = product(q, one_minus(a, step)), product(p, one_minus(beta, step)) if beta else p
    return sum((c * m for c, m in zip(product(q, q), risk.moments, strict=False)), Fraction(0))


def one_minus(scale, polynomial):
    return [entry - Fraction(scale) * x for x, entry in zip_longest(polynomial, [Fraction(1)], fillvalue=0)]


def product(left, right):
    result = [Fraction(0)] * (len(left) + len(right) - 1)
    for i, x in enumerate(left):
        for j, y in enumerate(right):
            result[i + j] += x * y
    return result
