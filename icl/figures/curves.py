"""What a panel draws, as data: the same curves are drawn and written to the CSV.

S (or R) seeds, T (or X) points, I and J rows and columns of a matrix.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from icl.figures.style import EXACT, band, exact_line
from icl.runs.record import RunRecord

Rows = list[dict[str, Any]]


@dataclass(frozen=True, eq=False)
class Curve:
    """A series of one panel with a value for every seed; `style` goes to matplotlib."""

    panel: str
    series: str
    color: str
    x_T: np.ndarray
    y_ST: np.ndarray
    style: Mapping[str, Any] = field(default_factory=dict)

    def draw(self, axes: Axes) -> None:
        band(axes, self.x_T, self.y_ST, self.color, self.series, **self.style)

    def rows(self) -> Rows:
        mean_T, low_T, high_T = self.y_ST.mean(0), self.y_ST.min(0), self.y_ST.max(0)
        columns = zip(self.x_T.tolist(), mean_T.tolist(), low_T.tolist(), high_T.tolist(), strict=True)
        return [
            {"panel": self.panel, "series": self.series, "x": x, "y": mean, "low": low, "high": high}
            for x, mean, low, high in columns
        ]


@dataclass(frozen=True, eq=False)
class Points:
    """Where every seed ended, as open marks."""

    panel: str
    series: str
    color: str
    x_X: np.ndarray
    y_XR: np.ndarray
    marker: str = "o"

    def draw(self, axes: Axes) -> None:
        marks: dict[str, Any] = {"marker": self.marker, "markersize": 3.5, "markerfacecolor": "none"}
        x_XR = np.broadcast_to(self.x_X[:, None], self.y_XR.shape)
        axes.plot(
            x_XR.ravel(), self.y_XR.ravel(), linestyle="none", color=self.color, label=self.series, **marks
        )

    def rows(self) -> Rows:
        low_X, mean_X, high_X = self.y_XR.min(1), self.y_XR.mean(1), self.y_XR.max(1)
        columns = zip(*(part.tolist() for part in (self.x_X, mean_X, low_X, high_X)), strict=True)
        return [
            {"panel": self.panel, "series": self.series, "x": x, "y": y, "low": low, "high": high}
            for x, y, low, high in columns
        ]


@dataclass(frozen=True, eq=False)
class Line:
    """Exact values as a function of x."""

    panel: str
    series: str
    x_T: np.ndarray
    y_T: np.ndarray
    style: Mapping[str, Any] = field(default_factory=dict)

    def draw(self, axes: Axes) -> None:
        axes.plot(self.x_T, self.y_T, label=self.series, **EXACT | dict(self.style))

    def rows(self) -> Rows:
        pairs = zip(self.x_T.tolist(), self.y_T.tolist(), strict=True)
        return [{"panel": self.panel, "series": self.series, "x": x, "y": y} for x, y in pairs]


@dataclass(frozen=True)
class Level:
    """A value known exactly, as a line of its own kind."""

    panel: str
    series: str
    value: float
    linestyle: Any = EXACT["linestyle"]

    def draw(self, axes: Axes) -> None:
        exact_line(axes, self.value, self.series, self.linestyle)

    def rows(self) -> Rows:
        return [{"panel": self.panel, "series": self.series, "y": self.value}]


def draw_panels(axes_by_panel: Mapping[str, Axes], drawn: Iterable[Curve | Level]) -> None:
    for item in drawn:
        item.draw(axes_by_panel[item.panel])


def table(drawn: Iterable[Curve | Level]) -> Rows:
    return [row for item in drawn for row in item.rows()]


def metric(run: RunRecord, name: str) -> tuple[np.ndarray, np.ndarray]:
    """(steps_T, values_ST) of a column of metrics.csv; the steps at which every seed has a value."""
    columns = run.metrics
    by_step: dict[int, dict[int, float]] = {}
    for step, seed, value in zip(columns["step"], columns["seed"], columns[name], strict=True):
        if value is not None:
            by_step.setdefault(step, {})[seed] = value
    seeds: Sequence[int] = run.run["seeds"]
    steps = [step for step, values in by_step.items() if len(values) == len(seeds)]
    return np.array(steps), np.array([[by_step[step][seed] for step in steps] for seed in seeds], dtype=float)


def matrix_rows(panel: str, M_SIJ: np.ndarray, seeds: Sequence[int]) -> Rows:
    """A heatmap's entries, of every seed and not only of the one drawn."""
    return [
        {"panel": panel, "seed": seed, "row": i, "column": j, "value": float(value)}
        for seed, M_IJ in zip(seeds, M_SIJ, strict=True)
        for (i, j), value in np.ndenumerate(M_IJ)
    ]
