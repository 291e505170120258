"""Stacks that a check of a construction must reject: one head taken out or of the wrong sign."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from icl.checks.verdict import Control
from icl.models.giannou.columns import ColumnStack, Head, Layer


def mutants(stack: ColumnStack) -> Iterator[tuple[int, str, Layer]]:
    """Yield (number of the layer, what is wrong, the wrong layer) for each head."""
    for number, layer in enumerate(stack.layers):
        for h, head in enumerate(layer.heads):
            others = [*layer.heads[:h], *layer.heads[h + 1 :]]
            turned = Head(-head.V_PP, head.K_PP, head.Q_PP)
            where = f"head {h + 1} of layer {number + 1}"
            yield number, f"{where} missing", replace(layer, heads=others)
            yield number, f"{where} of the wrong sign", replace(layer, heads=[*others, turned])


def with_layer(stack: ColumnStack, number: int, layer: Layer) -> ColumnStack:
    """Return the stack with another layer in the place of this one."""
    return ColumnStack(stack.rows, [*stack.layers[:number], layer, *stack.layers[number + 1 :]])


def least_wrong(what: str, wrong: Mapping[str, float], bound: float) -> Control:
    """Return the control that every one of them exceeds the bound; it shows the one nearest to it."""
    nearest = min(wrong, key=lambda name: wrong[name])
    text = f"{what}, the least of {len(wrong)} mutants: {nearest}"
    return Control(text, wrong[nearest], wrong[nearest] > bound)


def or_infinite(error: float) -> float:
    """Return the error, infinity where it is no number."""
    return error if np.isfinite(error) else float("inf")
