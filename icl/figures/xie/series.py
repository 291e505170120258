"""What Figures 1 to 5 of xie draw beside curves over seeds: short runs in the colour of long ones, quantiles.

R seeds, S steps, X settings, T points, Q quantiles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.lines import Line2D

from icl.figures.curves import Curve, Line, Points, Rows
from icl.figures.style import GREY

__all__ = ["Curve", "Line", "Points", "Quantiles", "legend", "losses", "shades", "step_axis"]

SHORT = "minibatch"
DOTTED: dict[str, Any] = {"linestyle": ":", "linewidth": 1.4}


@dataclass(frozen=True, eq=False)
class Quantiles:
    """A median with the band between a lower and an upper quantile, in this order along Q."""

    panel: str
    series: str
    color: str
    x_T: np.ndarray
    y_TQ: np.ndarray
    style: Mapping[str, Any] = field(default_factory=dict)

    def draw(self, axes: Axes) -> None:
        low_T, middle_T, high_T = self.y_TQ.T[[0, 1, -1]]
        axes.plot(self.x_T, middle_T, color=self.color, label=self.series, **self.style)
        axes.fill_between(self.x_T, low_T, high_T, color=self.color, alpha=0.2, linewidth=0)

    def rows(self) -> Rows:
        columns = zip(self.x_T.tolist(), self.y_TQ.tolist(), strict=True)
        return [
            {"panel": self.panel, "series": self.series, "x": x, "y": middle, "low": low, "high": high}
            for x, (low, middle, high) in columns
        ]


def shades(count: int) -> list[str]:
    """Colours in order, light to dark: told apart in grey."""
    return [to_hex(matplotlib.colormaps["viridis"](tone)) for tone in np.linspace(0.88, 0, count)]


def losses(panel: str, letter: str, name: str, exact: Mapping[str, np.ndarray]) -> list[Curve]:
    """The exact risk during training at every value of `name`, then of the minibatch runs in its colour."""
    values = exact[name].tolist()
    colors = dict(zip(values, shades(len(values)), strict=True))
    drawn = [
        Curve(panel, f"{letter} = {value:g}", colors[value], exact["steps_S"], risk_RS)
        for value, risk_RS in zip(values, exact["risk_XRS"], strict=True)
    ]
    short = exact[f"minibatch_{name}"].tolist()
    for value, risk_RS in zip(short, exact.get("minibatch_risk_XRS", ()), strict=True):
        series, color = f"{letter} = {value:g}, {SHORT}", colors.get(value, GREY)
        drawn.append(Curve(panel, series, color, exact["minibatch_steps_S"], risk_RS, DOTTED))
    return drawn


def legend(axes: Axes, **kwargs: Any) -> None:
    """One entry for all minibatch runs: each has the colour of what it is held against."""
    entries = zip(*axes.get_legend_handles_labels(), strict=True)
    kept = {text: handle for handle, text in entries if SHORT not in text}
    if len(kept) < len(axes.get_legend_handles_labels()[1]):
        kept[SHORT] = Line2D([], [], color=GREY, **DOTTED)
    axes.legend(kept.values(), kept.keys(), **kwargs)


def step_axis(axes: Axes, last: float) -> None:
    """Steps on a logarithmic axis that has room for step 0."""
    axes.set_xscale("symlog", linthresh=1, linscale=0.3)
    axes.set(xlim=(0, last), xlabel="step")
