"""A sweep as a picture: curves of a metric over a swept key, with intervals, or a map of it over two.

Swept keys that are neither on an axis nor told apart by colour have a panel for each of their values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure

from icl.errors import InputError, nearest
from icl.figures.items import Rows
from icl.figures.style import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY, entry_text, log_axis, panels
from icl.runs.bootstrap import bootstrap
from icl.runs.sweeps import Table

COLORS = (BLUE, ORANGE, GREEN, RED, PURPLE, SKY, GREY)
MOST_PANELS = 6
_DECADE = 10.0  # numbers that span more are on a logarithmic scale


@dataclass(frozen=True)
class SweptPlot:
    """`x` is a swept key; `y` a metric, of which there is a curve for each value of `hue`, or a second swept
    key, and then the colour is the metric `hue`."""

    rows: Table
    keys: Sequence[str]
    x: str
    y: str
    hue: str | None

    def __post_init__(self) -> None:
        metrics = self.metrics
        self._require("x", self.x, self.keys)
        self._require("y", self.y, [*metrics, *self.keys])
        self._require("hue", self.hue, metrics if self.is_map else [*self.keys, None])
        chosen = [key for key in (self.x, self.y, self.hue) if key is not None]
        if len(set(chosen)) < len(chosen):
            raise InputError(f"x={self.x} y={self.y} hue={self.hue}: must be different")
        if len(self.panels) > MOST_PANELS:
            raise InputError(
                f"x, y, hue: {', '.join(self.others)} are swept too and make {len(self.panels)} panels, "
                f"{MOST_PANELS} at most"
            )
        if not any(point["mean"] is not None for point in self.points):
            raise InputError(f"{self.metric}: no job of this sweep has it yet")

    @staticmethod
    def _require(name: str, value: str | None, known: Sequence[str | None]) -> None:
        if value not in known:
            names = [key for key in known if key is not None]
            raise InputError(f"{name}={value}: must be one of {', '.join(names)}{nearest(str(value), names)}")

    @property
    def metrics(self) -> list[str]:
        named = [*self.keys, "seed", "run_dir", "fingerprint"]
        return [name for name in (self.rows[0] if self.rows else {}) if name not in named]

    @property
    def is_map(self) -> bool:
        return self.y in self.keys

    @property
    def metric(self) -> str:
        return str(self.hue) if self.is_map else self.y

    @property
    def others(self) -> list[str]:
        return [key for key in self.keys if key not in (self.x, self.y, self.hue)]

    @property
    def panels(self) -> list[tuple[str, ...]]:
        return list(dict.fromkeys(tuple(row[key] for key in self.others) for row in self.rows))

    @property
    def points(self) -> Rows:
        """One for each configuration: the mean over its seeds, with its interval."""
        keys = [*self.others, *([self.y] if self.is_map else [self.hue] if self.hue else []), self.x]
        values: dict[tuple[str, ...], list[float | None]] = {}
        for row in self.rows:
            values.setdefault(tuple(row[key] for key in keys), []).append(row.get(self.metric))
        return [
            {
                **dict(zip(keys, place, strict=True)),
                "metric": self.metric,
                "seeds": len(samples),
                **bootstrap(samples),
            }
            for place, samples in values.items()
        ]

    @property
    def caption(self) -> str:
        about = f"{self.metric} over {self.x}" + (f" and {self.y}" if self.is_map else "")
        missing = sum(point["mean"] is None for point in self.points)
        why = (
            f"{missing} of {len(self.points)} have no such number, have failed or are not done"
            if missing
            else ""
        )
        left = f"; {why}, and are left out" if missing else ""
        band = "" if self.is_map else " with 95 % percentile bootstrap intervals of these means"
        seeds = sorted({point["seeds"] for point in self.points})
        many = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
        return f"{about}: means over {many} seeds{band}{left}."

    def draw(self) -> Figure:
        figure, axes = panels(1, len(self.panels), (3.0, 2.4))
        for place, values in zip(axes[0], self.panels, strict=True):
            points = [p for p in self.points if tuple(p[key] for key in self.others) == values]
            (self._map if self.is_map else self._curves)(figure, place, points)
            place.set_xlabel(self.x)
            place.set_title(", ".join(f"{k}={v}" for k, v in zip(self.others, values, strict=True)))
        axes[0, 0].set_ylabel(self.y)
        return figure

    def _curves(self, figure: Figure, axes: Axes, points: Rows) -> None:
        ticks = _scale([point[self.x] for point in points])
        series = dict.fromkeys(point[self.hue] if self.hue else "" for point in points)
        means = [p[name] for p in points for name in ("mean", "low") if p[name] is not None]
        for color, name in zip(cycle(COLORS), series):
            mine = [point for point in points if not self.hue or point[self.hue] == name]
            mine.sort(key=lambda point: ticks.at[point[self.x]])
            if all(point["mean"] is None for point in mine):
                continue
            x_T = [ticks.at[point[self.x]] for point in mine]
            mean_T, low_T, high_T = (
                [math.nan if point[which] is None else point[which] for point in mine]
                for which in ("mean", "low", "high")
            )
            axes.plot(x_T, mean_T, color=color, marker="o", markersize=2.5, label=name or None)
            axes.fill_between(x_T, low_T, high_T, color=color, alpha=0.2, linewidth=0)
        ticks.apply(axes)
        if min(means) > 0 and max(means) > _DECADE * min(means):
            log_axis(axes)
        if self.hue:
            axes.legend(title=self.hue)

    def _map(self, figure: Figure, axes: Axes, points: Rows) -> None:
        across, up = (_scale([point[key] for point in points]) for key in (self.x, self.y))
        mean_IJ = np.full((len(up.names), len(across.names)), np.nan)
        for point in points:
            if point["mean"] is not None:
                mean_IJ[up.names.index(point[self.y]), across.names.index(point[self.x])] = point["mean"]
        every = [point["mean"] for point in self.points if point["mean"] is not None]
        low, high = min(every), max(every)
        norm = LogNorm(low, high) if low > 0 and high > _DECADE * low else Normalize(low, high)
        image = axes.imshow(mean_IJ, cmap="viridis", norm=norm, origin="lower", aspect="auto")
        for (i, j), mean in np.ndenumerate(mean_IJ):
            if math.isfinite(mean):
                dark = norm(mean) < 0.6
                text = entry_text(mean) if 0.01 <= abs(mean) < 100 else f"{mean:.1e}"
                axes.text(
                    j, i, text, ha="center", va="center", fontsize=6, color="white" if dark else "black"
                )
        axes.set_xticks(range(len(across.names)), across.names)
        axes.set_yticks(range(len(up.names)), up.names)
        figure.colorbar(image, ax=axes, shrink=0.8).set_label(self.metric)

    def table(self) -> Rows:
        return self.points


@dataclass(frozen=True)
class _Scale:
    """Positions of a key's values on an axis: numbers as numbers, words one after another."""

    names: list[str]
    at: Mapping[str, float]
    is_number: bool

    def apply(self, axes: Axes) -> None:
        if not self.is_number:
            axes.set_xticks(range(len(self.names)), self.names)
            return
        low, high = min(self.at.values()), max(self.at.values())
        if low > 0 and high >= _DECADE * low:
            axes.set_xscale("log")
        elif len(self.names) <= 8:
            axes.set_xticks([self.at[name] for name in self.names], self.names)


def _scale(values: Sequence[str]) -> _Scale:
    names = list(dict.fromkeys(values))
    try:
        at = {name: float(name) for name in names}
    except ValueError:
        return _Scale(names, {name: float(i) for i, name in enumerate(names)}, False)
    return _Scale(sorted(names, key=lambda name: at[name]), at, True)
