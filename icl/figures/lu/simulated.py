"""Errors of simulated pretraining as points with intervals, and their limits as lines.

P settings, C dimensions, S series, X values of the swept ratio.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from icl import quantiles
from icl.figures.items import Item, Line, Rows
from icl.figures.style import BLUE, GREEN, ORANGE, PURPLE, RED
from icl.runs.record import RunRecord

COLORS = (BLUE, ORANGE, GREEN, RED, PURPLE)
MARKERS = ("v", "s", "o", "D", "^")  # of the dimensions, in rising order
NEAREST = 0.06  # of the height, between two texts
TAIL = 0.025  # of a point's interval, on each side
Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Intervals(Item):
    """Points with an interval each; only a `legend` is written in the legend."""

    color: str
    x_X: Array
    y_X: Array
    half_X: Array
    marker: str
    legend: str = ""

    def draw(self, axes: Axes) -> None:
        axes.errorbar(
            self.x_X, self.y_X, self.half_X, color=self.color, marker=self.marker, markersize=3,
            markerfacecolor="none", linestyle="none", linewidth=0.7, label=self.legend or "_",
        )  # fmt: skip

    def rows(self) -> Rows:
        return self._points(x=self.x_X, y=self.y_X, low=self.y_X - self.half_X, high=self.y_X + self.half_X)


def by_series(record: RunRecord, name: str, series: int) -> Array:
    """Return an array of settings by series and swept value; the others' axes stay."""
    array = record.weights[name]
    return array.reshape(series, -1, *array.shape[1:])


def measured(record: RunRecord, which: str, series: int) -> tuple[Array, Array]:
    """Return means and half widths of 95 % intervals, (S, X, C), of new or old tasks or of the gap."""
    factor_C = np.array([quantiles.student(TAIL, count - 1) for count in record.weights["draws_C"]])
    return by_series(record, f"{which}_PC", series), factor_C * by_series(
        record, f"{which}_stderr_PC", series
    )


def items(panel: str, record: RunRecord, which: str, labels: Sequence[str]) -> list[Item]:
    """Return the limit of every series, and the simulated points of every dimension."""
    arrays, mean_half = record.weights, measured(record, which, len(labels))
    x_SX = by_series(record, "x_P", len(labels))
    found: list[Item] = [
        Line(panel, label, arrays["x_X"], y_X, {"color": COLORS[s], "linestyle": "-"})
        for s, (label, y_X) in enumerate(zip(labels, arrays[f"{which}_curve_SX"], strict=True))
    ]
    for s, label in enumerate(labels):
        for c, d in enumerate(arrays["dims_C"]):
            y_X, half_X = (part[s, :, c] for part in mean_half)
            name = f"d = {d}"
            found.append(
                Intervals(
                    panel, f"{label}, {name}", COLORS[s], x_SX[s], y_X, half_X, MARKERS[c],
                    name if s == 0 else "",
                )
            )  # fmt: skip
    return found


def shares_off(record: RunRecord, which: str, c: int) -> Array:
    """Return by which share of the limit simulated errors are off it, at dimension number c."""
    arrays = record.weights
    return np.asarray(np.abs(arrays[f"{which}_PC"][:, c] / arrays[f"{which}_limit_P"] - 1))


def dimensions(axes: Axes) -> tuple[list[Any], list[str]]:
    """Return the legend's entries of the marks, without those of the lines."""
    pairs = [
        (h, text) for h, text in zip(*axes.get_legend_handles_labels(), strict=True) if text[:3] == "d ="
    ]
    return [handle for handle, _ in pairs], [text for _, text in pairs]


def label_ends(axes: Axes, x: float, y_S: Array, texts: Sequence[str]) -> None:
    """Write each line's ratio kappa at its end, in its colour, moved apart where ends are near."""
    low, high = np.log(axes.get_ylim())
    heights = np.log(y_S)
    order = np.argsort(heights)
    for below, above in pairwise(order):
        heights[above] = max(heights[above], heights[below] + NEAREST * (high - low))
    for s, text in enumerate(texts):
        axes.annotate(
            text, (x, np.exp(heights[s])), (3, 0), textcoords="offset points", color=COLORS[s],
            fontsize=6, va="center", annotation_clip=False,
        )  # fmt: skip
