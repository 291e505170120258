"""The plain transformer of giannou's section 3.1: tokens are columns, no softmax, no mask, no 1/n.

H <- H + sum_h V_h H (K_h H)^T (Q_h H), eq. (3.1a), then where a layer has one H <- H + W2 relu(W1 H), (3.1b).
Rows of H come in named blocks, so that weights can be written and read block by block.

P rows of H, M columns, X neurons; leading axes of H are prompts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

Blocks = Mapping[str, float]  # block -> coefficient of the identity in front of it


@dataclass(frozen=True)
class Rows:
    """Named blocks of rows, from the top; `"I[0]"` is the first row of block I."""

    sizes: Mapping[str, int]

    @property
    def width(self) -> int:
        return sum(self.sizes.values())

    def __getitem__(self, name: str) -> slice:
        block, _, index = name.partition("[")
        start = 0
        for other, size in self.sizes.items():
            if other == block:
                if not index:
                    return slice(start, start + size)
                row = start + int(index.rstrip("]"))
                return slice(row, row + 1)
            start += size
        raise ValueError(f"{name}: no such block of rows, they are {', '.join(self.sizes)}")

    def select(self, from_to: Mapping[str, Blocks]) -> Tensor:
        """Return the P x P matrix that writes to each block the given combination of blocks."""
        W_PP = torch.zeros(self.width, self.width, dtype=torch.float64)
        for target, sources in from_to.items():
            for source, c in sources.items():
                to, of = self[target], self[source]
                if to.stop - to.start != of.stop - of.start:
                    raise ValueError(f"{source} -> {target}: blocks of different sizes")
                W_PP[to, of] = c * torch.eye(to.stop - to.start, dtype=torch.float64)
        return W_PP

    def gather(self, sources: Blocks) -> Tensor:
        """Return the P x P matrix that brings a combination of blocks of one size to the topmost rows."""
        W_PP = torch.zeros(self.width, self.width, dtype=torch.float64)
        for source, c in sources.items():
            of = self[source]
            size = of.stop - of.start
            W_PP[:size, of] = c * torch.eye(size, dtype=torch.float64)
        return W_PP


@dataclass(frozen=True, eq=False)
class Head:
    """V H (K H)^T (Q H)."""

    V_PP: Tensor
    K_PP: Tensor
    Q_PP: Tensor

    @classmethod
    def of(cls, rows: Rows, value: Mapping[str, Blocks], key: Blocks, query: Blocks) -> Head:
        """`value` maps each block to what is added to it; key and query each a combination of blocks of one
        size."""
        return cls(rows.select(value), rows.gather(key), rows.gather(query))


@dataclass(frozen=True, eq=False)
class ReLU:
    """H + W2 relu(W1 H), token by token."""

    W1_XP: Tensor
    W2_PX: Tensor

    @property
    def width(self) -> int:
        return len(self.W1_XP)


@dataclass(frozen=True, eq=False)
class Layer:
    heads: Sequence[Head] = ()
    relu: ReLU | None = None
    purpose: str = ""  # in a few words


@dataclass(frozen=True, eq=False)
class ColumnStack:
    """A transformer as a list of layers over the same rows. Calling it gives the last H."""

    rows: Rows
    layers: Sequence[Layer] = field(default_factory=tuple)

    def __post_init__(self) -> None:
        P = self.rows.width
        for layer in self.layers:
            for head in layer.heads:
                for W_PP in (head.V_PP, head.K_PP, head.Q_PP):
                    if tuple(W_PP.shape) != (P, P):
                        raise ValueError(f"a head has a matrix {tuple(W_PP.shape)}, must be {(P, P)}")
            if layer.relu is not None and layer.relu.W1_XP.mT.shape != layer.relu.W2_PX.shape:
                raise ValueError("W1 and W2 of a ReLU layer do not fit")

    @property
    def width(self) -> int:
        return self.rows.width

    @property
    def heads(self) -> int:
        """Most heads in any layer."""
        return max(len(layer.heads) for layer in self.layers)

    @property
    def neurons(self) -> int:
        """Most neurons in any layer."""
        return max(0 if layer.relu is None else layer.relu.width for layer in self.layers)

    def __call__(self, H_PM: Tensor) -> Tensor:
        for layer in self.layers:
            H_PM = forward(layer, H_PM)
        return H_PM

    def every_layer(self, H_PM: Tensor) -> list[Tensor]:
        """H before the first layer and after each."""
        states = [H_PM]
        for layer in self.layers:
            states.append(forward(layer, states[-1]))
        return states

    def block(self, H_PM: Tensor, name: str) -> Tensor:
        """Return the rows of that name."""
        return H_PM[..., self.rows[name], :]

    def __add__(self, other: ColumnStack) -> ColumnStack:
        """Append the layers of the other stack."""
        if dict(self.rows.sizes) != dict(other.rows.sizes):
            raise ValueError("stacks over different rows do not follow one another")
        return ColumnStack(self.rows, [*self.layers, *other.layers])

    def fill(self, blocks: Mapping[str, Tensor], columns: int) -> Tensor:
        """H with these blocks from the left of their rows, zeros elsewhere."""
        leading = torch.broadcast_shapes(*(block.shape[:-2] for block in blocks.values()))
        H_PM = torch.zeros(*leading, self.width, columns, dtype=torch.float64)
        for name, block in blocks.items():
            H_PM[..., self.rows[name], : block.shape[-1]] = block
        return H_PM


def forward(layer: Layer, H_PM: Tensor) -> Tensor:
    """One layer. (V H) (K H)^T first: P x P whatever the number of columns."""
    attended_PM = H_PM
    for head in layer.heads:
        attended_PM = attended_PM + (head.V_PP @ H_PM) @ (head.K_PP @ H_PM).mT @ (head.Q_PP @ H_PM)
    if layer.relu is None:
        return attended_PM
    return attended_PM + layer.relu.W2_PX @ torch.relu(layer.relu.W1_XP @ attended_PM)
