"""Lemma 4.1: one step X1 = X0 (2 I - A X0) of Newton's iteration, in two layers or in one.

Rows X, A, Z, I of D each; M = D columns.
"""

from __future__ import annotations

import torch
from torch import Tensor

from icl.errors import whole
from icl.models.giannou.columns import ColumnStack, Head, Layer, Rows


def rows_of_lemma(dim: int) -> Rows:
    whole("construction.dim", dim, 1)
    return Rows({"X": dim, "A": dim, "Z": dim, "I": dim})


def two_layers(rows: Rows, matrix: str = "A", restored: bool = False) -> list[Layer]:
    """X <- 2 X - X A X with A itself stored in the block `matrix`, Z zero before and after.

    `restored` makes the same last head put the identity into that block: the matrix is no longer needed.
    """
    identity = {"I": 1.0}
    writes = {"X": {"X": 1.0}, "Z": {"Z": -1.0}}
    if restored:
        writes[matrix] = {"I": 1.0, matrix: -1.0}
    product = Head.of(rows, {"Z": {matrix: 1.0}}, key=identity, query={"X": 1.0})
    curvature = Head.of(rows, {"X": {"X": 1.0}}, key=identity, query={"Z": -1.0})
    carried = Head.of(rows, writes, key=identity, query=identity)
    return [
        Layer([product], purpose=f"Newton's iteration, first half: Z <- {matrix} X"),
        Layer([curvature, carried], purpose="Newton's iteration, second half: X <- 2 X - X Z, Z <- 0"),
    ]


def one_layer(rows: Rows, transpose: str = "A") -> Layer:
    """X <- 2 X - X A X with A^T stored in the block `transpose`: the key is read transposed."""
    curvature = Head.of(rows, {"X": {"X": -1.0}}, key={transpose: 1.0}, query={"X": 1.0})
    carried = Head.of(rows, {"X": {"X": 1.0}}, key={"I": 1.0}, query={"I": 1.0})
    return Layer([curvature, carried], purpose=f"Newton's iteration: X <- 2 X - X {transpose}^T X")


def lemma4_1(dim: int) -> ColumnStack:
    """Return the two layers of the proof; block A holds A."""
    rows = rows_of_lemma(dim)
    return ColumnStack(rows, two_layers(rows))


def lemma4_1_one_layer(dim: int) -> ColumnStack:
    """One layer; block A holds A^T, as the statement has it."""
    rows = rows_of_lemma(dim)
    return ColumnStack(rows, [one_layer(rows)])


def prompt_of_lemma(stack: ColumnStack, X_DD: Tensor, stored_DD: Tensor) -> Tensor:
    """[X0; A or A^T; 0; I]."""
    D = stored_DD.shape[-1]
    identity_DD = torch.eye(D, dtype=torch.float64)
    return stack.fill({"X": X_DD, "A": stored_DD, "I": identity_DD}, D)
