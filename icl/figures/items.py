"""Items of a panel, as data: the same items are drawn and written to the CSV.

S (or R) seeds, T (or X) points, Q quantiles, I and J rows and columns of a matrix.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from icl.figures.style import EXACT, band, exact_line, heatmap
from icl.runs.record import RunRecord

Rows = list[dict[str, Any]]
_SYMBOLS = {"pm": "+-", "langle": "<", "rangle": ">", "ell": "l"}


@dataclass(frozen=True, eq=False)
class Item(ABC):
    """One thing in a panel."""

    panel: str
    series: str

    @abstractmethod
    def draw(self, axes: Axes) -> None:
        """Add it to the panel's axes."""

    def rows(self) -> Rows:
        """Return it for the CSV, one value a row; nothing where it is only a mark."""
        return []

    def data(self, seeds: Sequence[int]) -> Rows:
        """Return it with a row for each seed and point: panel, curve, seed ("" of what has none), x, y."""
        return [
            {
                "panel": row["panel"],
                "curve": plain(row.get("series", self.series)),
                "seed": row.get("seed", ""),
            }
            | {key: value for key, value in row.items() if key not in ("panel", "series", "seed")}
            for row in self.rows()
        ]

    def _by_seed(self, seeds: Sequence[int], x_T: np.ndarray, y_ST: np.ndarray) -> Rows:
        """Return a row for each seed and point."""
        names = seeds if len(seeds) == len(y_ST) else range(len(y_ST))
        of = {"panel": self.panel, "curve": plain(self.series)}
        return [
            of | {"seed": seed, "x": x, "y": y}
            for seed, y_T in zip(names, y_ST.tolist(), strict=True)
            for x, y in zip(x_T.tolist(), y_T, strict=True)
        ]

    def _points(self, **columns: np.ndarray) -> Rows:
        """Return a row for each point, from columns of one length."""
        values = zip(*(column.tolist() for column in columns.values()), strict=True)
        of = {"panel": self.panel, "series": self.series}
        return [of | dict(zip(columns, point, strict=True)) for point in values]

    def _mean_and_range(self, x: np.ndarray, y: np.ndarray, seeds: int) -> Rows:
        """Return a row for each x; `seeds` is the axis of y over which mean and range go."""
        return self._points(x=x, y=y.mean(seeds), low=y.min(seeds), high=y.max(seeds))


@dataclass(frozen=True, eq=False)
class Curve(Item):
    """A series with a value for every seed, drawn as mean and range; `style` goes to matplotlib."""

    color: str
    x_T: np.ndarray
    y_ST: np.ndarray
    style: Mapping[str, Any] = field(default_factory=dict)

    def draw(self, axes: Axes) -> None:
        band(axes, self.x_T, self.y_ST, self.color, self.series, **self.style)

    def data(self, seeds: Sequence[int]) -> Rows:
        return self._by_seed(seeds, self.x_T, self.y_ST)

    def rows(self) -> Rows:
        return self._mean_and_range(self.x_T, self.y_ST, 0)


@dataclass(frozen=True, eq=False)
class Points(Item):
    """Values of every seed, as open marks."""

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

    def data(self, seeds: Sequence[int]) -> Rows:
        return self._by_seed(seeds, self.x_X, self.y_XR.T)

    def rows(self) -> Rows:
        return self._mean_and_range(self.x_X, self.y_XR, 1)


@dataclass(frozen=True, eq=False)
class Quantiles(Item):
    """A median with the band between a lower and an upper quantile, in the order low, median, high."""

    color: str
    x_T: np.ndarray
    y_TQ: np.ndarray
    style: Mapping[str, Any] = field(default_factory=dict)

    def draw(self, axes: Axes) -> None:
        low_T, median_T, high_T = self.y_TQ.T
        axes.plot(self.x_T, median_T, color=self.color, label=self.series, **self.style)
        axes.fill_between(self.x_T, low_T, high_T, color=self.color, alpha=0.2, linewidth=0)

    def rows(self) -> Rows:
        low_T, median_T, high_T = self.y_TQ.T
        return self._points(x=self.x_T, y=median_T, low=low_T, high=high_T)


@dataclass(frozen=True, eq=False)
class Line(Item):
    """Exact values as a function of x."""

    x_T: np.ndarray
    y_T: np.ndarray
    style: Mapping[str, Any] = field(default_factory=dict)

    def draw(self, axes: Axes) -> None:
        axes.plot(self.x_T, self.y_T, label=self.series, **EXACT | dict(self.style))

    def rows(self) -> Rows:
        return self._points(x=self.x_T, y=self.y_T)


@dataclass(frozen=True)
class Level(Item):
    """A value known exactly, as a horizontal line."""

    value: float
    linestyle: Any = EXACT["linestyle"]

    def draw(self, axes: Axes) -> None:
        exact_line(axes, self.value, self.series, self.linestyle)

    def rows(self) -> Rows:
        return [{"panel": self.panel, "series": self.series, "y": self.value}]


@dataclass(frozen=True, eq=False)
class Heatmap(Item):
    """A matrix for every seed, of which the first is drawn; `series` is its title."""

    M_SIJ: np.ndarray
    seeds: Sequence[int]

    def draw(self, axes: Axes) -> None:
        M_IJ = self.M_SIJ[0]
        heatmap(axes, M_IJ, self.series, float(np.abs(M_IJ).max()), bar=True)

    def rows(self) -> Rows:
        return matrix_rows(self.panel, self.M_SIJ, self.seeds)


def draw_items(axes_by_panel: Mapping[str, Axes], items: Iterable[Item]) -> None:
    for item in items:
        item.draw(axes_by_panel[item.panel])


def table(items: Iterable[Item]) -> Rows:
    return [row for item in items for row in item.rows()]


def plain(label: str) -> str:
    r"""Return a label without LaTeX: `Sigma^1/2 A_0 Sigma^1/2` of `$\Sigma^{1/2}A_0\Sigma^{1/2}$`."""
    return re.sub(r"\$([^$]*)\$", lambda formula: _plain(formula[1]), label)


def _plain(formula: str) -> str:
    text = re.sub(r"\\(?:mathcal|mathrm|mathbf)\b", "", formula).replace(r"\|", "|")
    for command, symbol in _SYMBOLS.items():
        text = re.sub(rf"\\{command}\b ?", symbol, text)
    if "\\" in text:
        text = re.sub(r"(?<=[\w}])(?=[A-Z\\])", " ", text).replace("\\", "")
    return re.sub(r"[{}]", "", text).strip()


def metric(run: RunRecord, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return (steps_T, values_ST) of a column of metrics.csv, at the steps where every seed has a value."""
    columns = run.metrics
    by_step: dict[int, dict[int, float]] = {}
    for step, seed, value in zip(columns["step"], columns["seed"], columns[name], strict=True):
        if value is not None:
            by_step.setdefault(step, {})[seed] = value
    seeds: Sequence[int] = run.run["seeds"]
    steps = [step for step, values in by_step.items() if len(values) == len(seeds)]
    return np.array(steps), np.array([[by_step[step][seed] for step in steps] for seed in seeds], dtype=float)


def matrix_rows(panel: str, M_SIJ: np.ndarray, seeds: Sequence[int]) -> Rows:
    """Return a matrix's entries for every seed."""
    return [
        {"panel": panel, "seed": seed, "row": i, "column": j, "value": float(value)}
        for seed, M_IJ in zip(seeds, M_SIJ, strict=True)
        for (i, j), value in np.ndenumerate(M_IJ)
    ]
