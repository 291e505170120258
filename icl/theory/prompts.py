"""A prompt in rationals, a stack of ahn's eq. (8) that runs on it, and algorithms: docs/vocabulary.md. An
algorithm returns the weights that it ends at, a column."""

from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple

from flint import fmpq, fmpq_mat

from icl.theory.rationals import identity, rational, trace


class Prompt(NamedTuple):
    """Rows of X are examples, the column y their labels, the column `query` what is asked."""

    X: fmpq_mat
    y: fmpq_mat
    query: fmpq_mat

    @property
    def moment(self) -> fmpq_mat:
        return self.X.transpose() * self.X / self.X.nrows()

    @property
    def label(self) -> fmpq_mat:
        """Return X^T y / n."""
        return self.X.transpose() * self.y / self.X.nrows()

    def predict(self, w: fmpq_mat) -> fmpq:
        return (w.transpose() * self.query)[0, 0]


def draw_prompt(d: int, n: int, seed: int = 0, noise: Any = 0) -> Prompt:
    """Return a prompt of random entries k / 8, |k| < 16, with labels w.x plus `noise` times such entries."""
    rng = Random(seed)
    X, w, e, query = (
        fmpq_mat(rows, columns, [fmpq(rng.randint(-15, 15), 8) for _ in range(rows * columns)])
        for rows, columns in ((n, d), (d, 1), (n, 1), (d, 1))
    )
    return Prompt(X, X * w + rational(noise) * e, query)


def forward(layers: Sequence[Any], prompt: Prompt) -> fmpq:
    """Return the prediction, token by token: a layer is a matrix A, or a number a for a I."""
    X, r, answer = prompt.X, prompt.y, fmpq(0)
    for layer in layers:
        A = layer if isinstance(layer, fmpq_mat) else rational(layer) * identity(X.ncols())
        attended = r.transpose() * X * A / X.nrows()  # sum of y_i x_i^T A
        r, answer = r - X * attended.transpose(), answer + (attended * prompt.query)[0, 0]
    return answer


def descent(prompt: Prompt, steps: int, step: Any) -> fmpq_mat:
    """Return gradient descent's weights, from 0, on |y - X w|^2 / (2n); a matrix `step` preconditions it."""
    w, S, c = fmpq_mat(prompt.query.nrows(), 1), prompt.moment, prompt.label
    rate = step if isinstance(step, fmpq_mat) else rational(step) * identity(S.nrows())
    for _ in range(steps):
        w = w + rate * (c - S * w)
    return w


def newton(prompt: Prompt, steps: int) -> fmpq_mat:
    """Return M X^T y / n after steps M <- M (2 I - S M) from S / (tr S)^2, which tend to the inverse of S."""
    S = prompt.moment
    M = S / trace(S) ** 2
    for _ in range(steps):
        M = M * (2 * identity(S.nrows()) - S * M)
    return M * prompt.label


def ridge(prompt: Prompt, penalty: Any) -> fmpq_mat:
    """Return the minimiser of |y - X w|^2 / n + penalty |w|^2."""
    return (prompt.moment + rational(penalty) * identity(prompt.query.nrows())).solve(prompt.label)


def least_squares(prompt: Prompt) -> fmpq_mat:
    """Return the weights of least squares, of least norm where n < d; X has full rank."""
    X = prompt.X
    short = X.nrows() < X.ncols()
    return X.transpose() * (X * X.transpose()).solve(prompt.y) if short else ridge(prompt, 0)
