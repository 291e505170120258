"""Prompts of Theorems 4.2 and 5.2: what both have in common."""

from __future__ import annotations

import torch
from torch import Tensor

from icl.errors import InputError
from icl.models.giannou.columns import ColumnStack


def shape_of(A_ND: Tensor) -> tuple[int, int]:
    """(N, D) of A; there must be room for the identity."""
    N, D = A_ND.shape[-2:]
    if N < D:
        raise InputError(f"A has {N} rows and {D} columns: n must be at least d, [I 0] is d x n")
    return N, D


def prompt(stack: ColumnStack, A_ND: Tensor, y_N: Tensor, **others: Tensor) -> Tensor:
    """[I; I; I; A^T; y^T], every other block as given or 0."""
    N, D = shape_of(A_ND)
    blocks = dict.fromkeys("XRI", torch.eye(D, dtype=torch.float64))
    return stack.fill({**blocks, "A": A_ND.mT, "y": y_N[..., None, :], **others}, N)
