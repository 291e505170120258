"""One layer of linear attention: the exact risk over all P and Q as a quadratic form. Rationals.

x ~ N(0, Sigma), w ~ N(0, T), y = w.x, tokens z = (x, y), G = sum z z^T / n over n examples. A layer enters
by b, the last row of P, and a_j, column j of Q: the error is sum_j x_j (w_j - <G, X_j>), X_j = -(b a_j^T +
a_j b^T)/2.
"""

from collections.abc import Sequence
from functools import cached_property
from itertools import combinations_with_replacement
from typing import Any

from flint import fmpq, fmpq_mat

from icl.theory.rationals import ZERO, column, diagonal, dot, identity, rational, trace, unit

Pair = tuple[int, int]


class OneLayer:
    """`sigma` and `task` (T, or I) are matrices, or lists of eigenvalues. Pairs (i, j), i <= j, name the
    entries of G; d is the label's place."""

    def __init__(
        self, sigma: fmpq_mat | Sequence[Any], n: Any, task: fmpq_mat | Sequence[Any] | None = None
    ) -> None:
        self.sigma = sigma if isinstance(sigma, fmpq_mat) else diagonal(sigma)
        self.n, self.d = rational(n), self.sigma.nrows()
        task = identity(self.d) if task is None else task
        self.task = task if isinstance(task, fmpq_mat) else diagonal(task)
        both = self.sigma * self.task
        self.label, self.label_square, self.slopes = trace(both), trace(both * both), both * self.sigma
        self.pairs = list(combinations_with_replacement(range(self.d + 1), 2))

    @cached_property
    def form(self) -> fmpq_mat:
        """E <G, X> <G, Y> in the entries of X and Y by `pairs`."""
        times = {p: 1 if p[0] == p[1] else 2 for p in self.pairs}
        entries = [self.second(p, q) * times[p] * times[q] for p in self.pairs for q in self.pairs]
        return fmpq_mat(len(self.pairs), len(self.pairs), entries)

    def target(self, j: int) -> fmpq_mat:
        """Return E w_j <G, X> in the entries of X."""
        both = self.sigma * self.task
        return column(2 * both[i, j] if k == self.d > i else 0 for i, k in self.pairs)

    def risk(self, X: Sequence[fmpq_mat]) -> fmpq:
        """Return the risk at symmetric matrices X_j."""
        columns = [column(x[p] for p in self.pairs) for x in X]
        targets, total = [self.target(j) for j in range(self.d)], trace(self.sigma * self.task)
        for j, x in enumerate(columns):
            moved = self.form * x
            for k, y in enumerate(columns):
                total += self.sigma[j, k] * (dot(moved, y) - 2 * dot(targets[k], x))
        return total

    @cached_property
    def label_form(self) -> fmpq_mat:
        """E g g^T, g = sum y x / n. As an odd number of labels has mean 0, no other entry of G meets g,
        and only g meets w: a minimum lies at X_j with no other entry."""
        places = [(i, self.d) for i in range(self.d)]
        return fmpq_mat(self.d, self.d, [self.second(p, q) for p in places for q in places])

    def gradient(self, A: fmpq_mat) -> fmpq_mat:
        """Return the gradient in A of the risk at <G, X_j> = (A^T g)_j, all of it: see `label_form`."""
        return 2 * (self.label_form * A - self.sigma * self.task) * self.sigma

    def risk_at(self, A: fmpq_mat) -> fmpq:
        """Return the risk at P = [[0, 0], [0, 1]], Q = -[[A, 0], [0, 0]]."""
        cross = A.transpose() * self.sigma * self.task
        return trace(
            self.sigma * (A.transpose() * self.label_form * A - cross - cross.transpose() + self.task)
        )

    def least(self) -> fmpq:
        """Return the least value over all symmetric X_j: a lower bound for every P and Q."""
        both = self.sigma * self.task
        return trace(self.sigma * (self.task - both.transpose() * self.label_form.solve(both)))

    def optimum(self) -> tuple[fmpq_mat, fmpq_mat]:
        """Return P and Q of the least risk."""
        return sparse(-self.label_form.solve(self.sigma * self.task))

    def step(self, M: fmpq_mat) -> tuple[fmpq, fmpq]:
        """Return the best step along M and the share of the risk of no step that it leaves."""
        none, ahead, back = (self.risk_at(s * M) for s in (0, 1, -1))  # the risk is quadratic in the step
        slope, bend = (back - ahead) / 2, ahead + back - 2 * none
        return slope / bend, 1 - slope**2 / (2 * bend * none)

    def second(self, p: Pair, q: Pair) -> fmpq:
        """Return E[G_p G_q]: given w the tokens are Gaussian with covariance C(w), then over w."""
        (a, b), (c, e) = p, q
        across = self._covariances((a, c), (b, e)) + self._covariances((a, e), (b, c))
        return self._covariances((a, b), (c, e)) + across / self.n

    def _covariances(self, p: Pair, q: Pair) -> fmpq:
        """Return E[C_p C_q]; C_xx = Sigma, C_xy = Sigma w, C_yy = w.Sigma w."""
        (a, b), (c, e), y = sorted(p), sorted(q), self.d
        labels = ((a == y) + (b == y), (c == y) + (e == y))
        if labels[0] > labels[1]:
            return self._covariances(q, p)
        if labels == (0, 0):
            return self.sigma[a, b] * self.sigma[c, e]
        if labels == (0, 2):
            return self.sigma[a, b] * self.label
        if labels == (1, 1):
            return self.slopes[a, c]
        if labels == (2, 2):
            return self.label**2 + 2 * self.label_square
        return ZERO  # odd in w


def sparse(A: fmpq_mat, B: fmpq_mat | None = None) -> tuple[fmpq_mat, fmpq_mat]:
    """Return P and Q of ahn's eq. (11), or with B = 0."""
    d = A.nrows()
    P, Q = unit(d, d, d + 1), fmpq_mat(d + 1, d + 1)
    for i in range(d):
        for j in range(d):
            Q[i, j] = A[i, j]
            if B is not None:
                P[i, j] = B[i, j]
    return P, Q


def products(P: fmpq_mat, Q: fmpq_mat) -> list[fmpq_mat]:
    """Return the X_j of a layer as the paper prints it."""
    d = P.nrows() - 1
    b = column(P[d, i] for i in range(d + 1))
    outer = [b * column(Q[i, j] for i in range(d + 1)).transpose() for j in range(d)]
    return [-(x + x.transpose()) / 2 for x in outer]
