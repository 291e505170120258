"""One layer applied L times in two dimensions: f(A) = E |(I - A^T G)^L|_F^2 as a polynomial in rationals.

G = W / n, W ~ Wishart_2(n, I) = T T^T by Bartlett, T = [[p, 0], [r, q]], p^2 ~ chi2_n, q^2 ~ chi2_(n - 1), r
~ N(0, 1). Every A is a I + b J + h H up to a rotation, J the rotation by 90 degrees and H = diag(1, -1); f is
even in b and h.
"""

from collections import defaultdict
from functools import cache
from typing import Any

from flint import Ordering, fmpq, fmpq_mpoly_ctx, fmpq_poly

from icl.theory.roots import evaluate

RING = fmpq_mpoly_ctx.get(["a", "b", "h", "p", "q", "r"], Ordering.lex)
MAX_LAYERS = 12
Terms = dict[tuple[int, int], fmpq_poly]  # polynomials in a, by the powers of b and h


@cache
def coefficients(layers: int, context: int, stretched: bool = True) -> Terms:
    """Return the coefficient of b^j h^k, a polynomial in a, by (j, k); h is 0 where not `stretched`."""
    rows: dict[tuple[int, int], dict[int, fmpq]] = defaultdict(dict)
    for powers, c in _symbolic(layers, stretched).terms():
        i, j, k, *pqr = map(int, powers)
        rows[j, k][i] = rows[j, k].get(i, fmpq(0)) + c * _mean(context, *pqr)
    polys = {at: fmpq_poly([row.get(i, fmpq(0)) for i in range(max(row) + 1)]) for at, row in rows.items()}
    return {at: poly for at, poly in polys.items() if poly != 0}


def risk(layers: int, context: int, a: fmpq, b: fmpq | int = 0, h: fmpq | int = 0) -> fmpq:
    """Return f(a I + b J + h H)."""
    constants = [RING.constant(fmpq(x)) for x in (a, b, h)]
    terms = _square_of_power(layers, *constants).terms()
    return sum((c * _mean(context, *map(int, powers[3:])) for powers, c in terms), fmpq(0))


def at(terms: Terms, a: Any, b: Any, square: Any = 0) -> Any:
    """Return the sum of the terms at rationals or balls, `square` that of h."""
    return sum((evaluate(poly, a) * b**j * square ** (k // 2) for (j, k), poly in terms.items()), 0 * a)


@cache
def _symbolic(layers: int, stretched: bool) -> Any:
    a, b, h = RING.gens()[:3]
    return _square_of_power(layers, a, b, h if stretched else RING.constant(0))


def _square_of_power(layers: int, a: Any, b: Any, h: Any) -> Any:
    p, q, r = RING.gens()[3:]
    G = ((p * p, p * r), (p * r, r * r + q * q))
    At = ((a + h, b), (-b, a - h))
    M = tuple(tuple(int(i == j) - _dot(At[i], (G[0][j], G[1][j])) for j in range(2)) for i in range(2))
    power = M
    for _ in range(layers - 1):
        power = tuple(tuple(_dot(row, (M[0][j], M[1][j])) for j in range(2)) for row in power)
    return sum((e * e for row in power for e in row), RING.constant(0))


def _dot(u: Any, v: Any) -> Any:
    return u[0] * v[0] + u[1] * v[1]


def _mean(n: int, p: int, q: int, r: int) -> fmpq:
    """Return the mean of the powers of Bartlett's numbers over n^((p + q + r) / 2)."""
    return chi(p, n) * chi(q, n - 1) * chi(r, 1) / fmpq(n) ** ((p + q + r) // 2)


@cache
def chi(power: int, freedom: int) -> fmpq:
    """Return E x^power, x^2 ~ chi2 of `freedom` degrees; at odd powers here another factor's mean is 0."""
    product = fmpq(0 if power % 2 else 1)
    for k in range(power // 2):
        product *= freedom + 2 * k
    return product
