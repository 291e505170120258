"""Products of many tiny matrices, batch axis last.

torch.bmm over (B, 5, 5) spends its time on calls; with the batch contiguous the same product is a handful of long
vector operations (measured with `icl bench train`). Layout (R, rows, columns, B).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def _product(X_RIKB: Tensor, Y_RKJB: Tensor) -> Tensor:
    out_RIJB = X_RIKB[:, :, 0, None] * Y_RKJB[:, None, 0]
    for k in range(1, X_RIKB.shape[2]):
        out_RIJB.addcmul_(X_RIKB[:, :, k, None], Y_RKJB[:, None, k])
    return out_RIJB


class _Product(torch.autograd.Function):
    """Saves the two factors only, where autograd would save every partial sum."""

    @staticmethod
    def forward(ctx: Any, X_RIKB: Tensor, Y_RKJB: Tensor) -> Tensor:
        ctx.save_for_backward(X_RIKB, Y_RKJB)
        return _product(X_RIKB, Y_RKJB)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None]:
        (grad_RIJB,) = grads
        X_RIKB, Y_RKJB = ctx.saved_tensors
        want_X, want_Y = ctx.needs_input_grad
        return (
            _product(grad_RIJB, Y_RKJB.transpose(1, 2)) if want_X else None,
            _product(X_RIKB.transpose(1, 2), grad_RIJB) if want_Y else None,
        )


def product(X_RIKB: Tensor, Y_RKJB: Tensor) -> Tensor:
    """X Y, prompt by prompt."""
    return _Product.apply(X_RIKB, Y_RKJB)


def from_left(M_RIK: Tensor, X_RKJB: Tensor) -> Tensor:
    """M X with one M for all prompts of a replica: a single matrix product."""
    R, K, J, B = X_RKJB.shape
    return (M_RIK @ X_RKJB.reshape(R, K, J * B)).view(R, M_RIK.shape[1], J, B)


def from_right(X_RIKB: Tensor, M_RKJ: Tensor) -> Tensor:
    """X M with one M for all prompts of a replica."""
    return M_RKJ.mT[:, None] @ X_RIKB


def batch_last(tensor: Tensor) -> Tensor:
    """(R, B, ...) to contiguous (R, ..., B)."""
    return tensor.movedim(1, -1).contiguous()
