"""Description of what each head of a stack reads and writes, taken from its weights."""

from __future__ import annotations

import torch
from torch import Tensor

from icl.constructions.account import Account, HeadAccount, LayerAccount, Part, ReLUAccount
from icl.models.giannou.columns import ColumnStack, Head, Layer, Rows

ATTENTION = "every column attends to every column: no mask, no softmax"


def describe(stack: ColumnStack, title: str = "", other: Account | None = None) -> Account:
    """Return the account of a stack, read off its weights, and of another for the same statement.

    A head's equation is what it adds to H: `X += -X (R)^T X` for V writing -X into block X, K reading R, Q
    reading X. Equal layers in a row are described once.
    """
    rows = stack.rows
    layers = [_layer(rows, layer) for layer in stack.layers]
    parts, start = [], 0
    while start < len(layers):
        length, times = _repetition(layers, start)
        parts.append(Part(start + 1, times, layers[start : start + length]))
        start += length * times
    return Account(dict(rows.sizes), ATTENTION, parts, title, other)


def _repetition(layers: list[LayerAccount], start: int) -> tuple[int, int]:
    """Return the shortest run of layers from `start` that repeats at once, and how often it comes."""
    for length in (1, 2):
        run = layers[start : start + length]
        times = 1
        while layers[start + times * length : start + (times + 1) * length] == run:
            times += 1
        if times > 1:
            return length, times
    return 1, 1


def _layer(rows: Rows, layer: Layer) -> LayerAccount:
    heads, relu = [_head(rows, head) for head in layer.heads], None
    if layer.relu is not None:
        written = [name for name in rows.sizes if bool(layer.relu.W2_PX[rows[name]].any())]
        relu = ReLUAccount(_read(rows, layer.relu.W1_XP), written, layer.relu.width)
    return LayerAccount(layer.purpose or "attention", heads, relu)


def _head(rows: Rows, head: Head) -> HeadAccount:
    key, query = _combination(rows, head.K_PP), _bracketed(_combination(rows, head.Q_PP))
    equations, written = [], _written(rows, head.V_PP)
    for target, value in written:
        value = value if value.startswith("-") and " " not in value else _bracketed(value)
        equations.append(f"{target} += {value} ({key})^T {query}")
    reads = [_read(rows, W_PP) for W_PP in (head.V_PP, head.K_PP, head.Q_PP)]
    return HeadAccount(equations, [target for target, _ in written], *reads)


def _read(rows: Rows, W_XP: Tensor) -> list[str]:
    """Return the blocks that W reads anything of."""
    return [name for name in rows.sizes if bool(W_XP[:, rows[name]].any())]


def _written(rows: Rows, V_PP: Tensor) -> list[tuple[str, str]]:
    """(block, what is written to it) for every block that V writes to."""
    return [
        (name, _combination(rows, V_PP[rows[name]])) for name in rows.sizes if bool(V_PP[rows[name]].any())
    ]


def _combination(rows: Rows, W_XP: Tensor) -> str:
    """Return the rows of W as a signed sum of blocks; a block read otherwise than by c I shows as
    M(block)."""
    terms = []
    for name, size in rows.sizes.items():
        W_XD = W_XP[:, rows[name]]
        if not bool(W_XD.any()):
            continue
        used = W_XD[:size]
        c = float(used[0, 0]) if len(used) == size else 0.0
        if c and not bool(W_XD[size:].any()) and torch.equal(used, c * torch.eye(size, dtype=used.dtype)):
            terms.append((c, name))
        elif int((W_XD != 0).sum()) == 1:
            index = int(W_XD.abs().sum(0).argmax())
            terms.append((float(W_XD.sum()), f"{name}[{index}]"))
        else:
            terms.append((1.0, f"M({name})"))
    text = ""
    for c, name in terms:
        size_of_c = "" if abs(c) == 1 else f"{abs(c):.4g} "
        sign = ("-" if c < 0 else "") if not text else (" - " if c < 0 else " + ")
        text += f"{sign}{size_of_c}{name}"
    return text


def _bracketed(text: str) -> str:
    return f"({text})" if " + " in text or " - " in text or text.startswith("-") else text
