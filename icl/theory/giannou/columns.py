"""The transformer of giannou's section 3.1 in exact numbers: H <- H + sum_h V_h H (K_h H)^T (Q_h H), eq.
(3.1a), no softmax, no mask, no 1/n. Tokens are columns; H is a dictionary of named blocks of rows, and V, K
and Q are multiples of the identity on blocks.

Blocks are fmpq_mat (no error) or arb_mat (each entry carries its own); the code is the same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flint import arb, arb_mat, fmpq, fmpq_mat

from icl.theory.blurred import Blurred
from icl.theory.rationals import largest

Blocks = Mapping[str, Any]  # block -> coefficient; "t[0]" is the first row of block t
State = Mapping[str, Any]  # block -> its rows
IDENTITY: Blocks = {"I": 1}
FIRST: Blocks = {"I[0]": 1}  # the first row of the identity
LARGEST = 10_000  # bits: beyond, the fraction of a ball's middle would fill the memory


@dataclass(frozen=True)
class Head:
    """V H (K H)^T (Q H)."""

    value: Mapping[str, Blocks]  # what is added to each block
    key: Blocks
    query: Blocks


Layer = tuple[Head, ...]


def forward(layer: Layer, H: State) -> dict[str, Any]:
    """Return H after one layer."""
    new = dict(H)
    for head in layer:
        key, query = _combine(H, head.key).transpose(), _combine(H, head.query)
        for block, sources in head.value.items():
            new[block] = new[block] + (_combine(H, sources) * key) * query
    return new


def lacking_a_head(layer: Layer) -> list[Layer]:
    """Return the layers that lack one of its heads."""
    return [layer[:h] + layer[h + 1 :] for h in range(len(layer))]


def width(H: State) -> int:
    return sum(block.nrows() for block in H.values())


def distance(H: State, other: State) -> fmpq:
    """Return the largest entry of the difference of two states in rationals."""
    return max(largest(H[name] - other[name]) for name in H)


def balls(H: State) -> dict[str, arb_mat]:
    return {name: arb_mat(block) for name, block in H.items()}


def near(H: State, bits: int = 32) -> dict[str, fmpq_mat]:
    """Return rationals near the middle of balls: multiples of 2^-bits of the largest entry of a block."""
    return {name: _near(block, bits) for name, block in H.items()}


def padded(M: fmpq_mat, columns: int) -> fmpq_mat:
    """Return M with zeros to its right."""
    rows, have = M.nrows(), M.ncols()
    return fmpq_mat(rows, columns, [M[i, j] if j < have else 0 for i in range(rows) for j in range(columns)])


def _near(block: arb_mat, bits: int) -> fmpq_mat:
    entries = block.entries()
    if any(
        not abs(entry) < arb(2) ** LARGEST or (entry.rad() > 1 and entry.rel_accuracy_bits() < 8)
        for entry in entries
    ):
        raise Blurred
    middles = [entry.mid().fmpq() for entry in entries]
    unit = max(max(map(abs, middles)), fmpq(1, 2**bits)) / 2**bits
    unit = fmpq(2) ** (int(unit.p).bit_length() - int(unit.q).bit_length())
    return fmpq_mat(block.nrows(), block.ncols(), [(middle / unit).floor() * unit for middle in middles])


def _combine(H: State, sources: Blocks) -> Any:
    first, *others = [_rows(H, name) * c for name, c in sources.items()]
    return sum(others, first)


def _rows(H: State, name: str) -> Any:
    block, _, index = name.partition("[")
    if not index:
        return H[block]
    rows: Sequence[Any] = H[block].tolist()
    return type(H[block])([rows[int(index[:-1])]])
