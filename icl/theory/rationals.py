"""Rational matrices: what python-flint's fmpq_mat leaves to be written."""

from collections.abc import Iterable, Sequence
from typing import Any

from flint import fmpq, fmpq_mat, fmpz

ZERO = fmpq(0)


def rational(number: Any) -> fmpq:
    """Return a number as it is, nothing rounded: a float is a fraction of a power of two."""
    if isinstance(number, str):
        return fmpq(*map(int, number.split("/")))
    return fmpq(number) if isinstance(number, fmpq | fmpz) else fmpq(*number.as_integer_ratio())


def matrix(rows: Iterable[Iterable[Any]]) -> fmpq_mat:
    entries = [[rational(entry) for entry in row] for row in rows]
    return fmpq_mat(len(entries), len(entries[0]), [entry for row in entries for entry in row])


def diagonal(entries: Sequence[Any]) -> fmpq_mat:
    out = fmpq_mat(len(entries), len(entries))
    for i, entry in enumerate(entries):
        out[i, i] = rational(entry)
    return out


def is_positive_definite(x: fmpq_mat) -> bool:
    """Return whether a symmetric matrix is, by its leading minors."""
    leading = (matrix([[x[i, j] for j in range(k)] for i in range(k)]) for k in range(1, x.nrows() + 1))
    return all(minor.det() > ZERO for minor in leading)


def identity(d: int) -> fmpq_mat:
    return diagonal([1] * d)


def unit(i: int, j: int, d: int) -> fmpq_mat:
    """Return the d x d matrix with a 1 at (i, j)."""
    out = fmpq_mat(d, d)
    out[i, j] = 1
    return out


def reflection(v: fmpq_mat) -> fmpq_mat:
    """Return I - 2 v v^T / |v|^2."""
    return identity(v.nrows()) - 2 * v * v.transpose() / dot(v, v)


def column(entries: Iterable[Any]) -> fmpq_mat:
    return matrix([entry] for entry in entries)


def dot(x: fmpq_mat, y: fmpq_mat) -> fmpq:
    """Return the sum of products of entries."""
    return sum((a * b for a, b in zip(x.entries(), y.entries(), strict=True)), ZERO)


def trace(x: fmpq_mat) -> fmpq:
    return sum((x[i, i] for i in range(x.nrows())), ZERO)


def largest(*matrices: fmpq_mat) -> fmpq:
    """Return the largest absolute entry."""
    return max(abs(entry) for x in matrices for entry in x.entries())
