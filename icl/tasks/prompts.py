"""The input of a model: a prompt as tokens, or as the Gram matrix of its tokens.

R replicas, B prompts, N context tokens, P token width. Every tensor leads with the replica axis.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
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
    """G = (1/N) sum z z^T of the context, query token, target; the prediction is read_out * (last entry).

    `context_R`: N, where it is known. Models without a mask ask for it.
    """

    gram_RBPP: Tensor
    query_RBP: Tensor
    target_RB: Tensor
    read_out: int = -1
    context_R: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if self.gram_RBPP.ndim != 4:
            raise ValueError(f"gram_RBPP has {self.gram_RBPP.ndim} axes, must have 4 (R, B, P, P)")
        R, B, P, _ = self.gram_RBPP.shape
        _require("gram_RBPP", self.gram_RBPP, (R, B, P, P))
        _require("query_RBP", self.query_RBP, (R, B, P))
        _require("target_RB", self.target_RB, (R, B))
        if self.read_out not in (-1, 1):
            raise ValueError(f"read_out={self.read_out}: must be -1 or 1")
        if self.context_R is not None and len(self.context_R) != R:
            raise ValueError(f"context_R={self.context_R}: must have {R} entries")

    def with_query(self) -> GramPrompt:
        """Return the same prompts with the query among the tokens that are summed, still divided by N: what
        attention without a mask sees."""
        if self.context_R is None:
            raise ValueError("without a mask the query counts 1/N, and context_R is None")
        weight_R111 = 1 / torch.tensor(self.context_R).view(-1, 1, 1, 1).to(self.query_RBP)
        own_RBPP = self.query_RBP[..., :, None] * self.query_RBP[..., None, :]
        return replace(self, gram_RBPP=self.gram_RBPP + weight_R111 * own_RBPP)


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

    def split(self, size: int) -> list[TokenPrompt]:
        """Return the prompts in pieces of at most `size` of each replica."""
        pieces = zip(
            self.context_RBNP.split(size, dim=1),
            self.query_RBP.split(size, dim=1),
            self.target_RB.split(size, dim=1),
            strict=True,
        )
        return [TokenPrompt(context, query, target, self.read_out) for context, query, target in pieces]

    def gram(self) -> GramPrompt:
        """Return the same prompts, seen through their Gram matrices."""
        z_RBNP = self.context_RBNP
        gram_RBPP = z_RBNP.transpose(-1, -2) @ z_RBNP / z_RBNP.shape[2]
        context_R = (z_RBNP.shape[2],) * len(z_RBNP)
        return GramPrompt(gram_RBPP, self.query_RBP, self.target_RB, self.read_out, context_R)
