"""Layers of the xie paper on one prompt with rational entries, token by token as they are printed.

Tokens are the columns of E = [x_1 .. x_C x_q; y_1 .. y_C y_q].
"""

from random import Random
from typing import Any

from flint import fmpq, fmpq_mat


class Prompt:
    """C examples and a query with random rational entries."""

    def __init__(self, rng: Random, dim: int, context: int) -> None:
        self.X, self.x_q = matrix(rng, dim, context), matrix(rng, dim, 1)
        self.y, self.context = matrix(rng, 1, context), context

    def tokens(self, y_q: fmpq) -> fmpq_mat:
        rows = [[*x, q] for x, q in zip(self.X.tolist(), self.x_q.entries(), strict=True)]
        return fmpq_mat([*rows, [*self.y.entries(), y_q]])

    def attention(self, P: fmpq_mat, Q: fmpq_mat, y_q: fmpq) -> list[fmpq]:
        """Return the query's token of E + P E M E^T Q E / C, where M masks the query."""
        E = self.tokens(y_q)
        rows, columns = E.nrows(), E.ncols()
        masked = fmpq_mat(
            rows, columns, [E[i, j] * (j < columns - 1) for i in range(rows) for j in range(columns)]
        )
        out = E + P * (masked * (E.transpose() * Q * E)) / self.context
        return [out[i, columns - 1] for i in range(rows)]

    def block(self, P: fmpq_mat, Q: fmpq_mat, W1: fmpq_mat, W2: fmpq_mat) -> fmpq:
        """Return the last entry of W_2^T W_1 z, eq. (30); z is the query's token, y_q = 0, after
        attention."""
        z = self.attention(P, Q, fmpq(0))
        return (W2.transpose() * W1 * fmpq_mat(len(z), 1, z)).entries()[-1]

    def guessed(self, P: fmpq_mat, Q: fmpq_mat, v: fmpq_mat) -> fmpq:
        """Return y_q-LSA's output, eqs. (11) and (12)."""
        return self.attention(P, Q, (v.transpose() * self.x_q)[0, 0])[-1]

    def step(self, start: fmpq_mat, eta: Any) -> fmpq:
        """Return the prediction after one gradient step from `start` on the mean of (y - w.x)^2 / 2."""
        off = start.transpose() * self.X - self.y
        w = start - eta * (self.X * off.transpose()) / self.context
        return (w.transpose() * self.x_q)[0, 0]


def layer_of(head: tuple[fmpq_mat, list[fmpq_mat]]) -> tuple[fmpq_mat, fmpq_mat]:
    """Return P and Q of a head (b, [a_1, ..]): b is the last row of P, a_k column k of Q."""
    b, columns = head
    P = fmpq_mat([*([0] * b.nrows() for _ in range(b.nrows() - 1)), b.entries()])
    return P, fmpq_mat([a.entries() for a in columns]).transpose()


def block_of(P: fmpq_mat, Q: fmpq_mat, v: fmpq_mat) -> tuple[fmpq_mat, fmpq_mat, fmpq_mat, fmpq_mat]:
    """Return the block (P, Q, W_1, W_2) of one hidden unit with the outputs of y_q-LSA (P, Q, v): the keys
    read y_q through x_q, and the MLP's row (v, 1) adds v.x_q after the attention."""
    d = v.nrows()
    last = fmpq_mat([[Q[i, d]] for i in range(d + 1)]) * v.transpose()
    keys = [[Q[i, j] + last[i, j] if j < d else 0 for j in range(d + 1)] for i in range(d + 1)]
    values = [[P[i, j] * (i == d) for j in range(d + 1)] for i in range(d + 1)]
    one = fmpq_mat([[0] * d + [1]])
    return fmpq_mat(values), fmpq_mat(keys), fmpq_mat([[*v.entries(), 1]]), one


def guessed_of(P: fmpq_mat, Q: fmpq_mat, W1: fmpq_mat, W2: fmpq_mat) -> tuple[fmpq_mat, fmpq_mat, fmpq_mat]:
    """Return the y_q-LSA (P, Q, v) with the outputs of a block of any width: v is of W_2^T W_1's last row."""
    d = P.nrows() - 1
    row = fmpq_mat([(W2.transpose() * W1).tolist()[d]])
    values = fmpq_mat([*([0] * (d + 1) for _ in range(d)), *(row * P).tolist()])
    keys = fmpq_mat([[Q[i, j] * (j < d) for j in range(d + 1)] for i in range(d + 1)])
    return values, keys, fmpq_mat([[e] for e in row.entries()[:d]])


def matrix(rng: Random, rows: int, columns: int) -> fmpq_mat:
    return fmpq_mat(rows, columns, [fmpq(rng.randint(-9999, 9999), 997) for _ in range(rows * columns)])
