"""Exact moments of W ~ Wishart_d(n, I), in integers, and polynomials of S = W / n.

d: dimension, n: degrees of freedom (context tokens), any size.

Two independent routes: a recursion for products of traces, whose cost grows with the number of partitions,
and an expansion in zonal polynomials for a single trace, whose cost grows with the cube of the degree.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from math import prod

from flint import fmpq, fmpq_mat, fmpq_poly

MAX_RECURSION_DEGREE = 30  # 28 629 partitions of 30 and less; degree 80 would visit more than 10^8
MAX_TRACE_DEGREE = 400


@lru_cache(maxsize=4096)
def trace_moment(degree: int, dim: int, freedom: int) -> int:
    """E tr W^degree. Zonal expansion; tested against the recursion.

    tr W^k = sum over partitions of <p_k, J>/<J, J> J(W) with the Jack polynomials J at alpha = 2 (zonal
    polynomials), and E J(W) = J(I) prod over boxes of (n + 2 (column) - row), rows and columns counted from
    0. The coefficient of p_k in J is the product of (2 column - row) over all boxes but the first, hence
    zero for every shape that contains row 2, column 1: only the shapes (a, b, 1, ..., 1) remain.
    """
    _check(dim, freedom)
    if not 0 <= degree <= MAX_TRACE_DEGREE:
        raise ValueError(f"degree={degree}: must be from 0 to {MAX_TRACE_DEGREE}; the cost grows as its cube")
    if degree == 0:
        return dim
    rank = min(dim, freedom)  # a shape of more rows has a box whose factor is 0
    shapes = (shape for shape in _shapes(degree) if len(shape) <= rank)
    total = sum((_zonal_term(shape, dim, freedom) for shape in shapes), Fraction(0))
    if total.denominator != 1:
        raise AssertionError(f"E tr W^{degree} must be an integer, got {total}")
    return total.numerator


def covariance_moments(dim: int, freedom: int, count: int) -> list[fmpq]:
    """Return E tr S^k for k = 0 .. count - 1, S = W / n."""
    return [fmpq(trace_moment(k, dim, freedom), freedom**k) for k in range(count)]


def mean_trace(moments: Sequence[fmpq], poly: fmpq_poly) -> fmpq:
    """Return E tr poly(S), by the moments E tr S^k."""
    return sum((c * moments[k] for k, c in enumerate(poly.coeffs())), fmpq(0))


def best_polynomial(moments: Sequence[fmpq], degree: int) -> tuple[fmpq_poly, fmpq]:
    """Return q of this degree, q(0) = 1, with the least E tr q(S)^2, and that value."""
    k = degree + 1
    forms = fmpq_mat(k, k, [moments[i + j] for i in range(k) for j in range(k)])
    column = forms.solve(fmpq_mat(k, 1, [int(i == 0) for i in range(k)]))
    return fmpq_poly([entry / column[0, 0] for entry in column.entries()]), 1 / column[0, 0]


def product_moment(partition: Sequence[int], dim: int, freedom: int) -> int:
    """E prod_j tr W^{partition_j}, by the recursion (Stein's lemma in the factor of W); tr W^0 = d."""
    _check(dim, freedom)
    if any(part < 0 for part in partition):
        raise ValueError(f"partition={list(partition)}: powers must not be negative")
    if sum(partition) > MAX_RECURSION_DEGREE:
        raise ValueError(
            f"degree {sum(partition)} is too high: the recursion visits every partition of it, "
            f"at most degree {MAX_RECURSION_DEGREE}; a single trace has trace_moment"
        )
    return _recursion(tuple(sorted(partition, reverse=True)), dim, freedom)


@lru_cache(maxsize=200_000)
def _recursion(partition: tuple[int, ...], dim: int, freedom: int) -> int:
    powers = tuple(part for part in partition if part)
    if len(powers) < len(partition):
        return dim ** (len(partition) - len(powers)) * _recursion(powers, dim, freedom)
    if not powers:
        return 1
    k, others = powers[0], powers[1:]

    def expectation(*parts: int) -> int:
        return _recursion(tuple(sorted(parts, reverse=True)), dim, freedom)

    total = (freedom + k - 1) * expectation(k - 1, *others)
    for i in range(1, k):
        total += expectation(i, k - 1 - i, *others)
    for j, power in enumerate(others):
        total += 2 * power * expectation(k - 1 + power, *others[:j], *others[j + 1 :])
    return total


def _shapes(degree: int) -> Iterator[tuple[int, ...]]:
    """Partitions (a, b, 1, ..., 1) of the degree: those without a box in row 2, column 1."""
    for first in range(1, degree + 1):
        left = degree - first
        if left == 0:
            yield (first,)
        for second in range(1, min(first, left) + 1):
            yield (first, second, *([1] * (left - second)))


def _zonal_term(shape: tuple[int, ...], dim: int, freedom: int) -> Fraction:
    boxes = [(row, column) for row, length in enumerate(shape) for column in range(length)]
    degree = len(boxes)
    coefficient = prod(2 * column - row for row, column in boxes[1:])
    mean = prod((dim + 2 * column - row) * (freedom + 2 * column - row) for row, column in boxes)
    rows, second = len(shape), shape[1] if len(shape) > 1 else 0
    norm = 1
    for row, column in boxes:
        height = rows if column == 0 else 2 if column < second else 1
        arm, leg = shape[row] - column - 1, height - row - 1
        norm *= (2 * arm + leg + 1) * (2 * arm + leg + 2)
    return Fraction(2 * degree * coefficient * mean, norm)


def _check(dim: int, freedom: int) -> None:
    if dim < 1:
        raise ValueError(f"dim={dim}: must be at least 1")
    if freedom < 1:
        raise ValueError(f"freedom={freedom}: must be at least 1")
