"""What a model sees: a prompt as tokens, or as the Gram matrix of its tokens.

R replicas, B prompts, N context tokens, P token width. Every tensor leads with the replica axis.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Self

import torch
from torch import Tensor


def _require(name: str, tensor: Tensor, shape: tuple[int, ...]) -> None:
    if tuple(tensor.shape) != shape:
        raise ValueError(f"{name} has shape {tuple(tensor.shape)}, must have {shape}")


class _Moves:
    """Moving a frozen prompt to a device or a precision makes a new one."""

    def to(self, target: torch.device | torch.dtype) -> Self:
        moved: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        return type(self)(**{k: v.to(target) if isinstance(v, Tensor) else v for k, v in moved.items()})


@dataclass(frozen=True)
class GramPrompt(_Moves):
    """G = (1/N) sum z z^T of the context, query token, target; the prediction is read_out * (last entry)."""

    gram_RBPP: Tensor
    query_RBP: Tensor
    target_RB: Tensor
    read_out: int = -1

    def __post_init__(self) -> None:
        if self.gram_RBPP.ndim != 4:
            raise ValueError(f"gram_RBPP has {self.gram_RBPP.ndim} axes, must have 4 (R, B, P, P)")
        R, B, P, _ = self.gram_RBPP.shape
        _require("gram_RBPP", self.gram_RBPP, (R, B, P, P))
        _require("query_RBP", self.query_RBP, (R, B, P))
        _require("target_RB", self.target_RB, (R, B))
        if self.read_out not in (-1, 1):
            raise ValueError(f"read_out={self.read_out}: must be -1 or 1")


@dataclass(frozen=True)
class TokenPrompt(_Moves):
    """The context tokens themselves; what activations other than the identity need."""

    context_RBNP: Tensor
    query_RBP: Tensor
    target_RB: Tensor
    read_out: int = -1

    def __post_init__(self) -> None:
        if self.context_RBNP.ndim != 4:
            raise ValueError(f"context_RBNP has {self.context_RBNP.ndim} axes, must have 4 (R, B, N, P)")
        R, B, N, P = self.context_RBNP.shape
        if N < 1:
            raise ValueError("context_RBNP has no context tokens")
        _require("query_RBP", self.query_RBP, (R, B, P))
        _require("target_RB", self.target_RB, (R, B))
        if self.read_out not in (-1, 1):
            raise ValueError(f"read_out={self.read_out}: must be -1 or 1")

    def gram(self) -> GramPrompt:
        """The same prompts, seen through their Gram matrices."""
        z_RBNP = self.context_RBNP
        gram_RBPP = z_RBNP.transpose(-1, -2) @ z_RBNP / z_RBNP.shape[2]
        return GramPrompt(gram_RBPP, self.query_RBP, self.target_RB, self.read_out)
