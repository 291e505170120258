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

RING = fmpq_mpoly_ctx.get(["a", "b"], Ordering.lex)
MOST_LAYERS = 5  # six take half a million words
Letter = tuple[int, int]
Word = tuple[Letter, ...]


def rotated(dim: int, context: int, layers: int, planes: int) -> Terms:
    """Return f(a I + b K), K the rotation by 90 degrees in so many planes, as plane.coefficients does."""
    a, b = RING.gens()

    def traces(p: int, q: int) -> Any:
        re, im = RING.constant(1), RING.constant(0)
        for _ in range(abs(p - q)):
            re, im = re * a - im * b, re * b + im * a
        return 2 * planes * re * (a * a + b * b) ** min(p, q) + (dim - 2 * planes) * a ** (p + q)

    return _terms(risk(dim, context, layers, traces))


def stretched(dim: int, context: int, layers: int, directions: int) -> Terms:
    """Return f(a I + b D), D the identity in so many directions and 0 in the others."""
    a, b = RING.gens()

    def traces(p: int, q: int) -> Any:
        return directions * (a + b) ** (p + q) + (dim - directions) * a ** (p + q)

    return _terms(risk(dim, context, layers, traces))


def _terms(f: Any) -> Terms:
    found: dict[tuple[int, int], fmpq_poly] = {}
    for powers, c in f.terms():
        i, j = map(int, powers)
        found[j, 0] = found.get((j, 0), fmpq_poly()) + c * fmpq_poly([0] * i + [1])
    return found


def risk(dim: int, context: int, layers: int, traces: Callable[[int, int], Any]) -> Any:
    """Return f(A), given tr A^p A^Tq."""
    mean = _means(dim, context, traces)
    total = traces(0, 0)
    for i in range(layers + 1):
        for j in range(layers + 1):
            ways = (-1) ** (i + j) * comb(layers, i) * comb(layers, j)
            if i and j:  # (A^T G)^i (G A)^j
                total += ways * mean(((0, 1),) * (i - 1) + ((0, 0),) + ((1, 0),) * (j - 1) + ((1, 1),))
            elif i or j:
                total += ways * mean(((1, 0),) * (i + j))
    return total


def _means(dim: int, n: int, traces: Callable[[int, int], Any]) -> Callable[[Word], Any]:
    known = cache(traces)

    @cache
    def product(words: tuple[Word, ...]) -> Any:
        """Return E prod_i tr (W X_i1 W X_i2 ..): W is a sum of n x x^T, and E x f(x) = E grad f(x)."""
        if not words:
            return 1
        first, rest = words[0], words[1:]
        head, last = first[:-1], first[-1]
        if head:
            total = n * product(_sorted((*head[1:], _both(last, head[0])), *rest))
        else:
            total = n * known(*last) * product(rest)
        for k in range(1, len(head) + 1):  # another W of the same trace
            one, other = head[:k], (*head[k:], last)
            total += product(_sorted(_joined(one, other), *rest))
            if len(other) == 1:
                total += known(*last) * product(_sorted(one, *rest))
            else:
                total += product(_sorted(one, (*other[1:-1], _both(last, other[0])), *rest))
        for at, word in enumerate(rest):  # W of another trace
            without = rest[:at] + rest[at + 1 :]
            for k in range(len(word)):
                turned = word[k:] + word[:k]
                total += product(_sorted(_joined(first, turned), *without))
                total += product(_sorted(_joined(first, _flipped(turned)), *without))
        return total

    return lambda word: product(_sorted(word)) / n ** len(word)


def _both(x: Letter, y: Letter) -> Letter:
    return x[0] + y[0], x[1] + y[1]


def _flipped(word: Word) -> Word:
    return tuple((q, p) for p, q in reversed(word))


def _joined(one: Word, other: Word) -> Word:
    """Return the word of W B A^T, A and B as letters with W between them."""
    back = _flipped(one)
    return (*other[:-1], _both(other[-1], back[0]), *back[1:])


def _sorted(*words: Word) -> tuple[Word, ...]:
    least = (min(w[k:] + w[:k] for w in (word, _flipped(word)) for k in range(len(word))) for word in words)
    return tuple(sorted(least, key=lambda w: (len(w), w), reverse=True))
