"""One layer applied L times at a normal matrix, in any dimension: f(A) = E |(I - A^T G)^L|_F^2, G = W / n.

A commutes with A^T, so that a product of A and A^T is (p, q), how many there are of each, and a trace of one
is known from the eigenvalues. E tr (G A^p A^Tq G ..) is Stein's identity for the first G, on words alone.
"""

from collections.abc import Callable
from functools import cache
from math import comb
from typing import Any

from flint import Ordering, fmpq_mpoly_ctx, fmpq_poly

from icl.theory.looped.plane import Terms
from icl.theory.words import Stein

RING = fmpq_mpoly_ctx.get(["a", "b", "planes"], Ordering.lex)
MOST_LAYERS = 5  # six take half a million words


def rotated(dim: int, context: int, layers: int) -> dict[int, Terms]:
    """Return f(a I + b K), as plane.coefficients does, by the number of planes that K turns by 90 degrees."""
    a, b, planes = RING.gens()

    def traces(p: int, q: int) -> Any:
        re, im = RING.constant(1), RING.constant(0)
        for _ in range(abs(p - q)):
            re, im = re * a - im * b, re * b + im * a
        return 2 * planes * re * (a * a + b * b) ** min(p, q) + (dim - 2 * planes) * a ** (p + q)

    f = risk(context, layers, traces)
    return {count: _terms(f, count) for count in range(1, dim // 2 + 1)}


def stretched(dim: int, context: int, layers: int) -> Terms:
    """Return f(a I + b D), D the identity in one direction and 0 in the others."""
    a, b, _ = RING.gens()
    return _terms(risk(context, layers, lambda p, q: (a + b) ** (p + q) + (dim - 1) * a ** (p + q)))


def _terms(f: Any, planes: int = 0) -> Terms:
    found: Terms = {}
    for (i, j, k), c in f.terms():
        found[j, 0] = found.get((j, 0), fmpq_poly()) + c * planes**k * fmpq_poly([0] * i + [1])
    return found


def risk(context: int, layers: int, traces: Callable[[int, int], Any]) -> Any:
    """Return f(A), given tr A^p A^Tq."""
    words = Stein(
        context,
        times=lambda X, Y: (X[0] + Y[0], X[1] + Y[1]),
        transposed=lambda X: (X[1], X[0]),
        trace_of=cache(lambda X: traces(*X)),
    )
    total = traces(0, 0)
    for i in range(layers + 1):
        for j in range(layers + 1):
            ways = (-1) ** (i + j) * comb(layers, i) * comb(layers, j)
            if i and j:  # (A^T G)^i (G A)^j
                total += ways * words.expect([(0, 1)] * (i - 1) + [(0, 0)] + [(1, 0)] * (j - 1) + [(1, 1)])
            elif i or j:
                total += ways * words.expect([(1, 0)] * (i + j))
    return total
