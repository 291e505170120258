"""One layer applied L times at a normal matrix, in any dimension: f(A) = E |(I - A^T G)^L|_F^2, G = W / n.

A commutes with A^T, so that a product of A and A^T is (p, q), how many there are of each, and a trace of one
is known from the eigenvalues. E tr (G A^p A^Tq G ..) is Stein's identity for the first G, on words alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import comb
from typing import Any

from flint import Ordering, fmpq_mpoly_ctx, fmpq_poly

from icl.theory.looped.plane import Terms
from icl.theory.words import Stein

RING = fmpq_mpoly_ctx.get(["a", "b"], Ordering.lex)
MOST_LAYERS = 5  # six take half a million words


def rotated(dim: int, context: int, layers: int, planes: int) -> Terms:
    """Return f(a I + b K), K the rotation by 90 degrees in `planes` planes, as plane.coefficients does."""
    a, b = RING.gens()

    def traces(p: int, q: int) -> Any:
        re, im = RING.constant(1), RING.constant(0)
        for _ in range(abs(p - q)):
            re, im = re * a - im * b, re * b + im * a
        return 2 * planes * re * (a * a + b * b) ** min(p, q) + (dim - 2 * planes) * a ** (p + q)

    return risk(context, layers, traces)


def stretched(dim: int, context: int, layers: int, directions: int) -> Terms:
    """Return f(a I + b D), D the identity in `directions` directions and 0 in the others."""
    a, b = RING.gens()

    def traces(p: int, q: int) -> Any:
        return directions * (a + b) ** (p + q) + (dim - directions) * a ** (p + q)

    return risk(context, layers, traces)


def risk(context: int, layers: int, traces: Callable[[int, int], Any]) -> Terms:
    """Return f(A), given tr A^p A^Tq as a polynomial in a and b."""
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
    found: Terms = {}
    for (power, j), c in total.terms():
        found[j, 0] = found.get((j, 0), fmpq_poly()) + c * fmpq_poly([0] * power + [1])
    return found
