"""A description of a construction, layer by layer: which blocks of rows each head reads and writes, in plain
values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class HeadAccount:
    """The update that one head adds to H, one equation for each block that it writes to."""

    equations: Sequence[str]
    writes: Sequence[str]
    value: Sequence[str]  # the blocks that V reads, K and Q likewise
    key: Sequence[str]
    query: Sequence[str]


@dataclass(frozen=True)
class ReLUAccount:
    reads: Sequence[str]
    writes: Sequence[str]
    neurons: int


@dataclass(frozen=True)
class LayerAccount:
    says: str
    heads: Sequence[HeadAccount]
    relu: ReLUAccount | None = None

    def lines(self) -> list[str]:
        lines = [
            f"head {number}: {equation}"
            for number, head in enumerate(self.heads, 1)
            for equation in head.equations
        ]
        if self.relu is not None:
            written, read = ", ".join(self.relu.writes), ", ".join(self.relu.reads)
            lines.append(f"relu: {written} from {read} with {self.relu.neurons} neurons")
        return lines


@dataclass(frozen=True)
class Part:
    """Layers in a row, and how many times they come one after the other."""

    first: int  # number of its first layer, from 1
    times: int
    layers: Sequence[LayerAccount]

    def lines(self) -> list[str]:
        lines = []
        for number, layer in enumerate(self.layers, self.first):
            last = number + len(self.layers) * (self.times - 1)
            every = ", every second" if len(self.layers) == 2 else ""
            where = f"layer {number}" if self.times == 1 else f"layers {number} to {last}{every}"
            lines += [f"{where}: {layer.says}", *(f"  {line}" for line in layer.lines())]
        return lines


@dataclass(frozen=True)
class Account:
    """The named blocks of rows with their sizes, from the top, and the layers in their order."""

    rows: Mapping[str, int]
    attention: str  # whom a column attends to
    parts: Sequence[Part]
    title: str = ""  # where it is not the only one
    other: Account | None = None  # of the same statement

    def lines(self) -> list[str]:
        """One line for the rows, then one for each layer, head and ReLU layer; the other's after it."""
        sizes = ", ".join(f"{name} {size}" for name, size in self.rows.items())
        layers = [line for part in self.parts for line in part.lines()]
        title = [f"{self.title}:"] if self.title else []
        others = self.other.lines() if self.other is not None else []
        return [*title, f"rows: {sizes} = {sum(self.rows.values())}", *layers, *others]
