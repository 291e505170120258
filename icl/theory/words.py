"""Expected traces of words in S, the covariance of n standard normal vectors, and any rational matrices.

E tr(S X_1 S X_2 ..) by Stein's identity for the first S. A letter X is a product of the given matrices and
their transposes, so that the recursion is on words: it is the same whatever the entries are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from operator import add
from typing import Any

from flint import fmpq, fmpq_mat

from icl.theory.rationals import identity, rational, trace

Letter = tuple[tuple[int, bool], ...]  # a product of matrices, each with whether it is transposed
Word = tuple[Any, ...]  # of letters
ONE: Letter = ()


class Stein:
    """Expected traces of words, given the product, the transpose and the trace of letters."""

    def __init__(
        self,
        n: Any,
        times: Callable[[Any, Any], Any],
        transposed: Callable[[Any], Any],
        trace_of: Callable[[Any], Any],
    ) -> None:
        self.n, self.times, self.transposed, self.trace_of = n, times, transposed, trace_of
        self._traces = cache(self._stein)

    def expect(self, word: Iterable[Any]) -> Any:
        """Return E tr(S X_1 S X_2 .. S X_k) for word = (X_1, .., X_k)."""
        letters = tuple(word)
        return self._traces(self._sorted(letters)) / self.n ** len(letters)

    def _stein(self, words: tuple[Word, ...]) -> Any:
        """Return E prod_i tr(W X_i1 W X_i2 ..), W = n S: W = sum of x x^T, and E x f(x) = E grad f(x)."""
        if not words:
            return fmpq(1)
        (*head, last), rest = words[0], words[1:]
        if head:  # the derivative of x itself: n I in the place of W
            total = self.n * self._traces(self._sorted((*head[1:], self.times(last, head[0])), *rest))
        else:
            total = self.n * self.trace_of(last) * self._traces(rest)
        for k in range(1, len(head) + 1):  # tr(W A W B) gives tr(W B A^T) + tr(W A) tr(B)
            A, B = tuple(head[:k]), (*head[k:], last)
            total += self._traces(self._sorted(self._joined(A, B), *rest))
            if len(B) == 1:
                total += self.trace_of(last) * self._traces(self._sorted(A, *rest))
            else:
                total += self._traces(self._sorted(A, (*B[1:-1], self.times(last, B[0])), *rest))
        for at, other in enumerate(rest):  # tr(W A) tr(W B) gives tr(W B A^T) + tr(W B^T A^T)
            without = rest[:at] + rest[at + 1 :]
            for k in range(len(other)):
                B = other[k:] + other[:k]
                total += self._traces(self._sorted(self._joined(words[0], B), *without))
                total += self._traces(self._sorted(self._joined(words[0], self._flipped(B)), *without))
        return total

    def _flipped(self, word: Word) -> Word:
        return tuple(self.transposed(X) for X in reversed(word))

    def _joined(self, A: Word, B: Word) -> Word:
        """Return the word of W B A^T, A and B as letters with W between them."""
        back = self._flipped(A)
        return (*B[:-1], self.times(B[-1], back[0]), *back[1:])

    def _sorted(self, *words: Word) -> tuple[Word, ...]:
        least = (
            min(w[k:] + w[:k] for w in (word, self._flipped(word)) for k in range(len(word)))
            for word in words
        )
        return tuple(sorted(least, key=lambda w: (len(w), w), reverse=True))


class Words(Stein):
    """Words whose letters are products of these matrices."""

    def __init__(self, matrices: Sequence[fmpq_mat], n: Any) -> None:
        super().__init__(rational(n), add, _turned, self._trace_of)
        self.matrices, self.d = list(matrices), matrices[0].nrows()
        self.turned = [x.transpose() for x in matrices]
        self._product = cache(self._multiplied)
        self._trace = cache(lambda letter: trace(self._product(letter)))

    def _trace_of(self, letter: Letter) -> fmpq:
        """Return the trace of the least of the cyclic turns of a product and its transpose: all have one."""
        if not letter:
            return fmpq(self.d)
        return self._trace(min(x[k:] + x[:k] for x in (letter, _turned(letter)) for k in range(len(x))))

    def _multiplied(self, letter: Letter) -> fmpq_mat:
        if len(letter) > 1:
            half = len(letter) // 2
            return self._product(letter[:half]) * self._product(letter[half:])
        ((i, transposed),) = letter
        return self.turned[i] if transposed else self.matrices[i]


class Drawn(Words):
    """Words in S, the covariance of n vectors of N(0, sigma), whose letters are matrices."""

    def __init__(self, sigma: fmpq_mat, n: Any) -> None:
        super().__init__([sigma], n)
        self.sigma, self._places = sigma, dict[tuple[fmpq, ...], int]()

    def trace(self, letters: Sequence[fmpq_mat]) -> fmpq:
        """Return E tr(S X_1 S X_2 .. S X_k)."""
        factor, word = fmpq(1), []
        for X in letters:
            Y = X * self.sigma  # S = R Z R, R^2 = sigma: the letter of Z is R X R, with the traces of this
            if Y[0, 0] * identity(self.d) == Y:
                factor, letter = factor * Y[0, 0], ONE
            else:
                place = self._places.setdefault(tuple(Y.entries()), len(self.matrices))
                if place == len(self.matrices):
                    self.matrices.append(Y)
                    self.turned.append(X.transpose() * self.sigma)
                letter = ((place, False),)
            word.append(letter)
        return factor * self.expect(word) if factor else factor


def stack_risk(
    A: Sequence[fmpq_mat],
    n: Any,
    sigma: fmpq_mat | None = None,
    task: fmpq_mat | None = None,
    noise: Any = 0,
    test: fmpq_mat | None = None,
) -> fmpq:
    """Return the risk of L layers of ahn's eq. (8), A_1 the first: sigma is whitened by default, the query
    ~ N(0, test) of the same law. The error is K w - M X^T e / n, e of variance `noise`, K and M sums of terms
    m_0 S m_1 S .. S m_k."""
    one = identity(A[0].nrows())
    sigma, task = sigma or one, task or one
    words, test = Drawn(sigma, n), test or sigma
    K, M = [[one]], list[list[fmpq_mat]]()
    for layer in (a.transpose() for a in A):  # K becomes (I - A^T S) K, and M too, plus A^T
        K += [[-layer, *term] for term in K]
        M += [*([-layer, *term] for term in M), [layer]]
    total = _square(words, K, [task], test)
    return total + rational(noise) / words.n * _square(words, M, [], test) if noise else total


def _square(words: Drawn, terms: Sequence[list[fmpq_mat]], middle: list[fmpq_mat], test: fmpq_mat) -> fmpq:
    """Return E tr(test K T K^T), T in the `middle`, or S where nothing is; K the sum of the terms."""
    total = fmpq(0)
    for at, left in enumerate(terms):
        for right in terms[: at + 1]:
            back = [x.transpose() for x in reversed(right)]
            row = [*left[:-1], left[-1] * middle[0] * back[0], *back[1:]] if middle else [*left, *back]
            letters = [*row[1:-1], row[-1] * test * row[0]]
            once = words.trace(letters) if len(row) > 1 else trace(test * row[0])
            total += once if left is right else 2 * once
    return total


def stack_slope(A: Sequence[fmpq_mat], n: Any, layer: int, along: fmpq_mat) -> fmpq:
    """Return the derivative of that risk at A_layer + t `along`: quadratic in t, so the difference is
    exact."""
    plus, minus = ([*A[:layer], A[layer] + s * along, *A[layer + 1 :]] for s in (1, -1))
    return (stack_risk(plus, n) - stack_risk(minus, n)) / 2


def _turned(letter: Letter) -> Letter:
    return tuple((i, not transposed) for i, transposed in reversed(letter))
