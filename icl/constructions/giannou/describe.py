"""What each head of a stack reads and writes, in words read off its weights."""

from __future__ import annotations

import torch
from torch import Tensor

from icl.models.columns import ColumnStack, Head, ReLU, Rows


def describe(stack: ColumnStack) -> list[str]:
    """One line for the rows, then one for each layer, head and ReLU layer.

    A head's line is what it adds to H: `X += -X (R)^T X` for V writing -X into block X, K reading R, Q
    reading X. Equal layers in a row are told once.
    """
    rows = stack.rows
    lines = ["rows: " + ", ".join(f"{name} {size}" for name, size in rows.sizes.items()) + f" = {rows.width}"]
    told = [_layer(rows, layer.says, list(layer.heads), layer.relu) for layer in stack.layers]
    start = 0
    while start < len(told):
        length, times = _repetition(told, start)
        last = start + length * times
        for i in range(start, start + length):
            every = ", every second" if length == 2 else ""
            up_to = last - length + 1 + i - start
            number = f"layer {i + 1}" if times == 1 else f"layers {i + 1} to {up_to}{every}"
            lines += [f"{number}: {told[i][0]}", *(f"  {line}" for line in told[i][1:])]
        start = last
    return lines


def _repetition(told: list[list[str]], start: int) -> tuple[int, int]:
    """The shortest run of layers from `start` that repeats at once, and how often it comes."""
    for length in (1, 2):
        run = told[start : start + length]
        times = 1
        while told[start + times * length : start + (times + 1) * length] == run:
            times += 1
        if times > 1:
            return length, times
    return 1, 1


def _layer(rows: Rows, says: str, heads: list[Head], relu: ReLU | None) -> list[str]:
    lines = [says or "attention"]
    for number, head in enumerate(heads, 1):
        key, query = _combination(rows, head.K_PP), _combination(rows, head.Q_PP)
        for target, value in _written(rows, head.V_PP):
            value = value if value.startswith("-") and " " not in value else _bracketed(value)
            lines.append(f"head {number}: {target} += {value} ({key})^T {_bracketed(query)}")
    if relu is not None:
        read = [name for name in rows.sizes if bool(relu.W1_XP[:, rows[name]].any())]
        written = [name for name in rows.sizes if bool(relu.W2_PX[rows[name]].any())]
        lines.append(f"relu: {', '.join(written)} from {', '.join(read)} with {relu.width} neurons")
    return lines


def _written(rows: Rows, V_PP: Tensor) -> list[tuple[str, str]]:
    """(block, what is written to it) for every block that V writes to."""
    return [
        (name, _combination(rows, V_PP[rows[name]])) for name in rows.sizes if bool(V_PP[rows[name]].any())
    ]


def _combination(rows: Rows, W_XP: Tensor) -> str:
    """The rows of W as a signed sum of blocks; a block read otherwise than by c I shows as M(block)."""
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
