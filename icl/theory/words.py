"""Expected traces of words in S, the covariance of n standard normal vectors, and any rational matrices.

E tr(S X_1 S X_2 ..) by Stein's identity for the first S. A letter X is a product of the given matrices and
their transposes, so that the recursion is on words: it is the same whatever the entries are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import combinations
from typing import Any

from flint import fmpq, fmpq_mat

from icl.theory.rationals import identity, rational, trace

Letter = tuple[tuple[int, bool], ...]  # a product of matrices, each with whether it is transposed
Word = tuple[Letter, ...]
ONE: Letter = ()


class Words:
    """Words whose letters are products of these matrices."""

    def __init__(self, matrices: Sequence[fmpq_mat], n: Any) -> None:
        self.matrices, self.n, self.d = list(matrices), rational(n), matrices[0].nrows()
        self._traces = cache(self._stein)
        self._product = cache(self._multiplied)
        self._trace = cache(self._trace_of)

    def expect(self, word: Iterable[Letter]) -> fmpq:
        """Return E tr(S X_1 S X_2 .. S X_k) for word = (X_1, .., X_k)."""
        letters = tuple(word)
        return self._traces(_sorted(letters)) / self.n ** len(letters)

    def _stein(self, words: tuple[Word, ...]) -> fmpq:
        """Return E prod_i tr(W X_i1 W X_i2 ..), W = n S: W = sum of x x^T, and E x f(x) = E grad f(x)."""
        if not words:
            return fmpq(1)
        (*head, last), rest = words[0], words[1:]
        if head:  # the derivative of x itself: n I in the place of W
            total = self.n * self._traces(_sorted((*head[1:], last + head[0]), *rest))
        else:
            total = self.n * self._trace(_least_turn(last)) * self._traces(rest)
        for k in range(1, len(head) + 1):  # tr(W A W B) gives tr(W B A^T) + tr(W A) tr(B)
            A, B = tuple(head[:k]), (*head[k:], last)
            total += self._traces(_sorted(_joined(A, B), *rest))
            if len(B) == 1:
                total += self._trace(_least_turn(last)) * self._traces(_sorted(A, *rest))
            else:
                total += self._traces(_sorted(A, (*B[1:-1], last + B[0]), *rest))
        for at, other in enumerate(rest):  # tr(W A) tr(W B) gives tr(W B A^T) + tr(W B^T A^T)
            without = rest[:at] + rest[at + 1 :]
            for k in range(len(other)):
                B = other[k:] + other[:k]
                total += self._traces(_sorted(_joined((*head, last), B), *without))
                total += self._traces(_sorted(_joined((*head, last), _flipped(B)), *without))
        return total

    def _trace_of(self, letter: Letter) -> fmpq:
        return trace(self._product(letter)) if letter else fmpq(self.d)

    def _multiplied(self, letter: Letter) -> fmpq_mat:
        if len(letter) > 1:
            half = len(letter) // 2
            return self._product(letter[:half]) * self._product(letter[half:])
        ((i, transposed),) = letter
        return self.matrices[i].transpose() if transposed else self.matrices[i]


def stack_risk(A: Sequence[fmpq_mat], n: Any) -> fmpq:
    """Return the risk of L layers of ahn's eq. (8) at whitened A_l: E tr K K^T, K = (I - S A_1) .. (I - S
    A_L), the last layer first."""
    L, d = len(A), A[0].nrows()
    scalars = [a[0, 0] if a == a[0, 0] * identity(d) else None for a in A]
    words, total = Words(A, n), fmpq(d)
    chosen = [c for size in range(L + 1) for c in combinations(range(L), size)]
    for at, left in enumerate(chosen):
        for right in chosen[: at + 1] if left else ():
            (u, x), (v, y) = (_word(some, scalars) for some in (left, right))
            word = (*u[:-1], u[-1] + _turned(v[-1]), *map(_turned, v[-2::-1]), ONE) if right else u
            total += (1 if left == right else 2) * x * y * words.expect(word)
    return total


def stack_slope(A: Sequence[fmpq_mat], n: Any, layer: int, along: fmpq_mat) -> fmpq:
    """Return the derivative of that risk at A_layer + t `along`: quadratic in t, so the difference is
    exact."""
    plus, minus = ([*A[:layer], A[layer] + s * along, *A[layer + 1 :]] for s in (1, -1))
    return (stack_risk(plus, n) - stack_risk(minus, n)) / 2


def _word(layers: tuple[int, ...], scalars: Sequence[fmpq | None]) -> tuple[Word, fmpq]:
    """Return the letters of prod (-S A_l), and the factor of those that are multiples of I."""
    factor, word = fmpq((-1) ** len(layers)), []
    for layer in layers:
        scalar = scalars[layer]
        factor *= 1 if scalar is None else scalar
        word.append(((layer, False),) if scalar is None else ONE)
    return tuple(word), factor


def _turned(letter: Letter) -> Letter:
    return tuple((i, not transposed) for i, transposed in reversed(letter))


def _flipped(word: Word) -> Word:
    return tuple(_turned(letter) for letter in reversed(word))


def _joined(A: Word, B: Word) -> Word:
    """Return the word of W B A^T, A and B as letters with W between them."""
    back = _flipped(A)
    return (*B[:-1], B[-1] + back[0], *back[1:])


def _least_turn(letter: Letter) -> Letter:
    """Return the least of a product's cyclic turns and those of its transpose: all have one trace."""
    return min((x[k:] + x[:k] for x in (letter, _turned(letter)) for k in range(len(x))), default=ONE)


def _sorted(*words: Word) -> tuple[Word, ...]:
    least = (min(w[k:] + w[:k] for w in (word, _flipped(word)) for k in range(len(word))) for word in words)
    return tuple(sorted(least, key=lambda w: (len(w), w), reverse=True))
