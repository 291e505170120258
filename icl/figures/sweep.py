"""A sweep as a picture: curves of a metric over a swept key, with intervals, or a map of it over two.

Swept keys that are neither on an axis nor told apart by colour have a panel for each of their values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import NullLocator

from icl.errors import InputError, nearest
from icl.figures.drawing import Layout
from icl.figures.items import Rows
from icl.figures.legends import settle
from icl.figures.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    entry_text,
    is_leftmost,
    log_axis,
    rc,
)
from icl.runs.intervals import FEWEST, RANGE, STUDENT, interval_fields
from icl.runs.sweeps import Table

COLORS = (BLUE, ORANGE, GREEN, RED, PURPLE, SKY, GREY)
MOST_PANELS = 6
_DECADE = 10.0  # numbers that span more are on a logarithmic scale
_INTERVALS = {RANGE: "range over seeds", STUDENT: "95 % interval of the mean (Student's t)"}
IN_WORDS = {
    "optimizer.lr": "learning rate",
    "optimizer.weight_decay": "weight decay",
    "task.context": "context length n",
    "task.dim": "dimension d",
    "task.length": "sequence length T",
    "task.window": "window s",
    "task.label_noise": "variance of the label noise",
    "model.layers": "layers",
    "model.heads": "heads",
    "model.width": "width",
    "model.init_std": "standard deviation of the first weights",
    "train.steps": "training steps",
    "train.batch": "batch size",
    "train.clip": "bound on the gradient",
    "loss": "loss of the last batch",
    "exact_risk": "population risk",
    "risk_estimate": "population risk (estimate)",
    "risk_on_s": "population risk, projected on S",
    "gradient_norm": "norm of the risk's gradient",
    "dist_plain": "distance to multiples of the identity",
    "dist_preconditioned": "distance to multiples of the inverse covariance",
}


def in_words(name: str) -> str:
    """Return a swept key or a metric as a title for an axis."""
    return IN_WORDS.get(name) or name.rpartition(".")[2].replace("_", " ")


@dataclass(frozen=True)
class SweptPlot:
    """`x` is a swept key; `y` a metric, of which there is a curve for each value of `hue`, or a second swept
    key, and then the colour is the metric `hue`. The best configuration for each value of the keys `best_by`
    is marked."""

    rows: Table
    keys: Sequence[str]
    x: str
    y: str
    hue: str | None
    best_by: Sequence[str] = ()

    def __post_init__(self) -> None:
        metrics = self.metrics
        if not metrics:
            raise InputError(
                "sweep: none of its jobs has a number (`icl sweep sweep=...` shows their states)"
            )
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
        return list(dict.fromkeys(self._panel(row) for row in self.rows))

    def _panel(self, row: Mapping[str, Any]) -> tuple[str, ...]:
        return tuple(row[key] for key in self.others)

    @property
    def points(self) -> Rows:
        """Return a point for each configuration: the mean over its seeds, with its interval."""
        values: dict[tuple[str, ...], list[float | None]] = {}
        for row in self.rows:
            values.setdefault(tuple(row[key] for key in self.keys), []).append(row.get(self.metric))
        return [
            {
                **dict(zip(self.keys, place, strict=True)),
                "metric": self.metric,
                "seeds": len(samples),
                **interval_fields(samples),
            }
            for place, samples in values.items()
        ]

    @property
    def best(self) -> Rows:
        """The configuration of least mean for each value of the keys `best_by`."""
        groups: dict[tuple[str, ...], Rows] = {}
        for point in self.points if self.best_by else ():
            if point["mean"] is not None:
                groups.setdefault(tuple(point[key] for key in self.best_by), []).append(point)
        return [min(points, key=lambda point: point["mean"]) for points in groups.values()]

    @property
    def caption(self) -> str:
        over = [in_words(key) for key in ((self.x, self.y) if self.is_map else (self.x,))]
        about = f"{in_words(self.metric)} ({self.metric}) by {' and '.join(over)}"
        missing = sum(point["mean"] is None for point in self.points)
        why = f"; {missing} of {len(self.points)} have no such number, have failed or are not done: left out"
        seeds = sorted({point["seeds"] for point in self.points})
        many = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
        sentences = [f"{about}: means over {many} seed{'' if many == '1' else 's'}{why if missing else ''}."]
        if not self.is_map and self._intervals:
            sentences.append(f"Band: {self._band}.")
        if self.best:
            groups = ", ".join(map(in_words, self.best_by))
            each = "; ".join(map(self._of_best, self.best))
            sentences.append(f"Star: the least mean for each value of {groups}: {each}.")
        return " ".join(sentences)

    def _of_best(self, point: Mapping[str, Any]) -> str:
        rest = [f"{in_words(key)} {point[key]}" for key in self.keys if key not in self.best_by]
        group = ", ".join(f"{in_words(key)} {point[key]}" for key in self.best_by)
        return f"{group}: {', '.join(rest)} ({point['mean']:.4g})"

    @property
    def _intervals(self) -> list[str]:
        return [name for name in _INTERVALS if any(point["interval"] == name for point in self.points)]

    @property
    def _band(self) -> str:
        if len(self._intervals) == 1:
            return _INTERVALS[self._intervals[0]]
        few, many = (_INTERVALS[name] for name in self._intervals)
        return f"{few} where there are fewer than {FEWEST}, else {many}"

    def draw(self) -> Figure:
        titles = {place: self._title(place) for place in self.panels}
        figure, axes = Layout(list(titles.values()), (3.0, 2.4), columns=min(3, len(titles))).create()
        with rc_context(rc()):
            self._fill(figure, axes, titles)
            settle(figure)
        return figure

    def _fill(self, figure: Figure, axes: Mapping[str, Axes], titles: Mapping[tuple[str, ...], str]) -> None:
        for place, title in titles.items():
            points = [point for point in self.points if self._panel(point) == place]
            (self._map if self.is_map else self._curves)(figure, axes[title], points)
            axes[title].set(title=title, xlabel=in_words(self.x))
            if is_leftmost(axes[title]):
                axes[title].set_ylabel(in_words(self.y))
        if not self.is_map:
            self._scale_alike(list(axes.values()))

    def _scale_alike(self, panels: Sequence[Axes]) -> None:
        """Give all panels one scale: logarithmic where the means are positive and span a decade."""
        means = [point["mean"] for point in self.points if point["mean"] is not None]
        lows = [point["low"] for point in self.points if point["low"] is not None]
        is_log = min(means) > 0 and max(means) > _DECADE * min(means)
        limits = np.array([axes.get_ylim() for axes in panels])
        bottom, top = limits[:, 0].min(), limits[:, 1].max()
        if is_log:  # a band that reaches 0 has no end there
            bottom = min(means) / _DECADE if min(lows, default=1) <= 0 else min([*means, *lows]) / 1.2
        for axes in panels:
            axes.set_ylim(bottom, top)
            if is_log:
                log_axis(axes)

    def _title(self, place: Sequence[str]) -> str:
        return ", ".join(f"{in_words(key)} {value}" for key, value in zip(self.others, place, strict=True))

    def _curves(self, figure: Figure, axes: Axes, points: Rows) -> None:
        ticks = _scale([point[self.x] for point in points])
        series = dict.fromkeys(point[self.hue] if self.hue else "" for point in points)
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
            for point in (point for point in self.best if point in mine):
                axes.plot(ticks.at[point[self.x]], point["mean"], "*", color=color, markersize=8)
        ticks.apply(axes)
        handles, labels = axes.get_legend_handles_labels()
        if self._intervals and any(point["interval"] for point in points):
            handles, labels = [*handles, Patch(color=GREY, alpha=0.3, linewidth=0)], [*labels, self._band]
        if handles:
            axes.legend(handles, labels, title=in_words(self.hue) if self.hue else None)

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
        best = [(up.names.index(p[self.y]), across.names.index(p[self.x])) for p in self.best if p in points]
        for (i, j), mean in np.ndenumerate(mean_IJ):
            if math.isfinite(mean):
                dark = norm(mean) < 0.6
                text = entry_text(mean) if 0.01 <= abs(mean) < 100 else f"{mean:.1e}"
                text += "*" if (i, j) in best else ""
                axes.text(
                    j, i, text, ha="center", va="center", fontsize=6, color="white" if dark else "black"
                )
        axes.set_xticks(range(len(across.names)), across.names)
        axes.set_yticks(range(len(up.names)), up.names)
        figure.colorbar(image, ax=axes, shrink=0.8).set_label(in_words(self.metric))

    def table(self) -> Rows:
        return self.points


@dataclass(frozen=True)
class _Scale:
    """Positions of a key's values on an axis: numbers as numbers, words one after another."""

    names: list[str]
    at: Mapping[str, float]
    is_number: bool

    def apply(self, axes: Axes) -> None:
        """Put the ticks at the values, on a logarithmic scale where these span a decade."""
        low, high = min(self.at.values()), max(self.at.values())
        if self.is_number and low > 0 and high >= _DECADE * low:
            axes.set_xscale("log")
        axes.set_xticks([self.at[name] for name in self.names], self.names)
        axes.xaxis.set_minor_locator(NullLocator())


def _scale(values: Sequence[str]) -> _Scale:
    names = list(dict.fromkeys(values))
    try:
        at = {name: float(name) for name in names}
    except ValueError:
        return _Scale(names, {name: float(i) for i, name in enumerate(names)}, False)
    return _Scale(sorted(names, key=lambda name: at[name]), at, True)
