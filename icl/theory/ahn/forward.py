"""The forward pass of ahn's eqs. (3) and (4) on one prompt, in rationals. Columns of Z are tokens (x, y)."""

from collections.abc import Sequence
from itertools import zip_longest
from random import Random

from flint import fmpq, fmpq_mat

from icl.theory.one_layer import sparse as sparse
from icl.theory.rationals import column, matrix, rational

Layer = tuple[fmpq_mat, fmpq_mat]


def tokens(rng: Random, dim: int, context: int) -> tuple[fmpq_mat, fmpq]:
    """Return Z, whose query has the label 0, and the query's own label. All numbers are positive."""
    w, x = positive(rng, dim, 1), positive(rng, dim, context + 1)
    labels = (w.transpose() * x).entries()
    rows = [[x[i, j] for j in range(context + 1)] for i in range(dim)]
    return matrix([*rows, [*labels[:-1], 0]]), labels[-1]


def positive(rng: Random, rows: int, columns: int) -> fmpq_mat:
    """Return random positive entries. A polynomial that is zero at all of these is zero, and sums of them
    do not cancel."""
    return matrix([[fmpq(rng.randint(1, 99), 100) for _ in range(columns)] for _ in range(rows)])


def covariates(Z: fmpq_mat) -> fmpq_mat:
    """Return the covariates of all tokens, the query's last."""
    return matrix([[Z[i, j] for j in range(Z.ncols())] for i in range(Z.nrows() - 1)])


def examples(Z: fmpq_mat) -> fmpq_mat:
    """Return X, the examples' covariates."""
    return matrix([[Z[i, j] for j in range(Z.ncols() - 1)] for i in range(Z.nrows() - 1)])


def second_moment(Z: fmpq_mat) -> fmpq_mat:
    """Return X X^T / n."""
    X = examples(Z)
    return X * X.transpose() / X.ncols()


def mean_label(Z: fmpq_mat) -> fmpq_mat:
    """Return X y / n."""
    n = Z.ncols() - 1
    return examples(Z) * column(Z[Z.nrows() - 1, j] for j in range(n)) / n


def forward(Z: fmpq_mat, layers: Sequence[Layer], factor: fmpq | None = None) -> list[fmpq_mat]:
    """Return Z after every layer: Z + `factor` P Z M Z^T Q Z, where M leaves the query out.
    `factor` is 1/n by default."""
    n = Z.ncols() - 1
    factor = rational(1) / n if factor is None else factor
    states = []
    for P, Q in layers:
        context = matrix([[Z[i, j] for j in range(n)] for i in range(Z.nrows())])
        Z = Z + factor * (P * (context * context.transpose() * Q * Z))
        states.append(Z)
    return states


def query_label(Z: fmpq_mat, A: Sequence[fmpq_mat], B: Sequence[fmpq_mat] = ()) -> fmpq:
    """Return the query's label after layers of eq. (11), where a B is missing of eq. (8)."""
    return forward(Z, [sparse(*layer) for layer in zip_longest(A, B)])[-1][Z.nrows() - 1, Z.ncols() - 1]
