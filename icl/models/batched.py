"""Products of many tiny matrices, batch axis last.

torch.bmm over (B, 5, 5) spends its time on calls; with the batch contiguous the same product is a handful of
long vector operations (measured with `scripts/bench/kernel.py`). Layout (R, rows, columns, B).
"""

from typing import Any

import torch
from torch import Tensor

from icl.kernel.recording import recordable

CACHED = 1 << 18  # numbers of all prompts of a piece that stay in a core's cache, with the few made from them


def _product(X_RIKB: Tensor, Y_RKJB: Tensor, plus_RIJB: Tensor | None = None) -> Tensor:
    first = X_RIKB[:, :, 0, None], Y_RKJB[:, None, 0]
    out_RIJB = torch.mul(*first) if plus_RIJB is None else torch.addcmul(plus_RIJB, *first)
    for k in range(1, X_RIKB.shape[2]):
        out_RIJB.addcmul_(X_RIKB[:, :, k, None], Y_RKJB[:, None, k])
    return out_RIJB


class _Product(torch.autograd.Function):
    """Saves the two factors only, where autograd would save every partial sum."""

    @staticmethod
    def forward(ctx: Any, X_RIKB: Tensor, Y_RKJB: Tensor, plus_RIJB: Tensor | None) -> Tensor:
        ctx.save_for_backward(X_RIKB, Y_RKJB)
        return _product(X_RIKB, Y_RKJB, plus_RIJB)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (grad_RIJB,) = grads
        X_RIKB, Y_RKJB = ctx.saved_tensors
        want_X, want_Y, want_plus = ctx.needs_input_grad
        return (
            _product(grad_RIJB, Y_RKJB.transpose(1, 2)) if want_X else None,
            _product(X_RIKB.transpose(1, 2), grad_RIJB) if want_Y else None,
            grad_RIJB if want_plus else None,
        )


class _SquaredNorm(torch.autograd.Function):
    """One pass over memory backward, where autograd would take three."""

    @staticmethod
    def forward(ctx: Any, X_RIJB: Tensor) -> Tensor:
        ctx.save_for_backward(X_RIJB)
        return X_RIJB.square().sum((1, 2))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        (X_RIJB,) = ctx.saved_tensors
        return X_RIJB * (2 * grads[0])[:, None, None]


@recordable
def matmul(X_RIKB: Tensor, Y_RKJB: Tensor, plus_RIJB: Tensor | None = None) -> Tensor:
    """X Y, or plus + X Y, prompt by prompt."""
    return _Product.apply(X_RIKB, Y_RKJB, plus_RIJB)


@recordable
def squared_norm(X_RIJB: Tensor) -> Tensor:
    """Sum of the squared entries of each prompt's matrix: (R, B)."""
    return _SquaredNorm.apply(X_RIJB)


@recordable
def left_matmul(M_RIK: Tensor, X_RKJB: Tensor) -> Tensor:
    """M X with one M for all prompts of a replica: a single matrix product."""
    R, K, J, B = X_RKJB.shape
    return (M_RIK @ X_RKJB.reshape(R, K, J * B)).view(R, M_RIK.shape[1], J, B)


@recordable
def right_matmul(X_RIKB: Tensor, M_RKJ: Tensor) -> Tensor:
    """X M with one M for all prompts of a replica."""
    return M_RKJ.mT[:, None] @ X_RIKB


def batch_last(tensor: Tensor) -> Tensor:
    """(R, B, ...) to contiguous (R, ..., B)."""
    return tensor.movedim(1, -1).contiguous()


def prompts_at_a_time(prompt_RBX: Tensor, numbers: int) -> int:
    """Return how many prompts to compute with at a time, if `numbers` numbers for each one pass through every
    layer: all of them where a gradient is needed, which keeps them, and on other devices than the CPU."""
    B = prompt_RBX.shape[1]
    if torch.is_grad_enabled() or prompt_RBX.device.type != "cpu":
        return B
    return max(1, min(B, CACHED // numbers))
