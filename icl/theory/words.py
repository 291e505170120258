"""Expected traces of words in S, the covariance of n standard normal vectors, and any rational matrices.

E tr(S X_1 S X_2 ..) by Stein's identity for the first S. A letter X is a product of the given matrices and
their transposes, so that the recursion is on words: it is the same whatever the entries are.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cache, reduce
from math import prod
from typing import Any

from flint import fmpq, fmpq_mat, fmpz, fmpz_mat

from icl.theory.rationals import identity, rational

Letter = tuple[int, ...]  # a product of matrices, by their places in a list
Word = tuple[Any, ...]  # of letters
Term = tuple[fmpq, list[Letter]]  # c m_0 S m_1 S .. S m_k
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
        self._traces, self._least = cache(self._stein), cache(self._least_turn)

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
        return tuple(sorted(map(self._least, words), key=lambda w: (len(w), w), reverse=True))

    def _least_turn(self, word: Word) -> Word:
        return min(w[k:] + w[:k] for w in (word, self._flipped(word)) for k in range(len(word)))


class Drawn(Stein):
    """Words in S, the covariance of n vectors of N(0, sigma), whose letters are products of matrices.

    S = R Z R with R^2 = sigma: the letter of Z for X is R X R, and the product of two letters has sigma
    between them. Matrices are kept as integers without a common factor: fractions multiply slowly."""

    def __init__(self, sigma: fmpq_mat, n: Any) -> None:
        super().__init__(rational(n), lambda X, Y: X + self._between + Y, self.turned, self._trace_of)
        self.d, self._matrices, self._turn = sigma.nrows(), list[fmpz_mat](), list[int]()
        self._places = dict[tuple[fmpz, ...], int]()
        self._product, self._trace = cache(self._multiplied), cache(self.trace_without)
        self._factor, self._between = self.letter(sigma)

    def letter(self, X: fmpq_mat) -> tuple[fmpq, Letter]:
        """Return X as a factor and a letter, the empty one where X is a multiple of the identity."""
        if X[0, 0] * identity(self.d) == X:
            return X[0, 0], ONE
        whole, denominator = X.numer_denom()
        common = reduce(fmpz.gcd, whole.entries())
        whole = fmpz_mat(self.d, self.d, [x // common for x in whole.entries()])
        if tuple(whole.entries()) not in self._places:
            place, turned = len(self._matrices), whole.transpose()
            both = [whole] if whole == turned else [whole, turned]
            self._turn += range(place, place + len(both))[::-1]
            self._matrices += both
            self._places.update((tuple(x.entries()), place + k) for k, x in enumerate(both))
        return fmpq(common, denominator), (self._places[tuple(whole.entries())],)

    def turned(self, letter: Letter) -> Letter:
        """Return the transpose."""
        return tuple([self._turn[place] for place in letter[::-1]])

    def trace(self, letters: Sequence[fmpq_mat]) -> fmpq:
        """Return E tr(S X_1 S X_2 .. S X_k)."""
        factors, word = zip(*map(self.letter, letters), strict=True)
        return prod(factors, start=self.expect(word))

    def expect(self, word: Iterable[Letter]) -> fmpq:
        return self._factor ** len(letters := tuple(word)) * super().expect(letters)

    def trace_without(self, letter: Letter) -> fmpz:
        """Return tr X."""
        if not letter:
            return fmpz(self.d)
        product = self._product(letter)
        return sum((product[i, i] for i in range(self.d)), fmpz(0))

    def _trace_of(self, letter: Letter) -> fmpz:
        """Return the trace of the least of the cyclic turns of a product and its transpose: all have one."""
        x = letter + self._between
        turns = (y[k:] + y[:k] for y in (x, self.turned(x)) for k in range(len(x)))
        return self._trace(min(turns, default=ONE))

    def _multiplied(self, letter: Letter) -> fmpz_mat:
        if len(letter) > 1:
            half = len(letter) // 2
            return self._product(letter[:half]) * self._product(letter[half:])
        return self._matrices[letter[0]]


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
    sigma, task = (one if given is None else given for given in (sigma, task))
    words, test = Drawn(sigma, n), sigma if test is None else test
    K, M = [(fmpq(1), [ONE])], list[Term]()
    for factor, letter in map(words.letter, A):  # K becomes (I - A^T S) K, and M too, plus A^T
        layer = words.turned(letter)
        K += [(-factor * c, [layer, *term]) for c, term in K]
        M += [*((-factor * c, [layer, *term]) for c, term in M), (factor, [layer])]
    total = _square(words, K, task, test)
    return total + rational(noise) / words.n * _square(words, M, None, test) if noise else total


def _square(words: Drawn, terms: Sequence[Term], middle: fmpq_mat | None, test: fmpq_mat) -> fmpq:
    """Return E tr(test K T K^T), T in the `middle`, or S where nothing is; K the sum of the terms."""
    (factor, around), total = words.letter(test), fmpq(0)
    if middle is not None:
        inner, within = words.letter(middle)
        factor *= inner
    for at, (c, left) in enumerate(terms):
        for e, right in terms[: at + 1]:
            back = [words.turned(x) for x in reversed(right)]
            row = [*left, *back]
            if middle is not None:
                row = [*left[:-1], left[-1] + within + back[0], *back[1:]]
            letters = [*row[1:-1], row[-1] + around + row[0]]
            once = words.expect(letters) if len(row) > 1 else words.trace_without(around + row[0])
            total += c * e * once * (1 if left is right else 2)
    return factor * total


def stack_slope(A: Sequence[fmpq_mat], n: Any, layer: int, along: fmpq_mat) -> fmpq:
    """Return the derivative of that risk at A_layer + t `along`: quadratic in t, so the difference is
    exact."""
    plus, minus = ([*A[:layer], A[layer] + s * along, *A[layer + 1 :]] for s in (1, -1))
    return (stack_risk(plus, n) - stack_risk(minus, n)) / 2
