"""Curves of short runs in the colour of long ones, for Figures 2, 3 and 5 of xie.

R seeds, S steps, X settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.lines import Line2D

from icl.figures.items import Curve
from icl.figures.style import GREY

SHORT = "minibatch"
DOTTED: dict[str, Any] = {"linestyle": ":", "linewidth": 1.4}


def shades(count: int) -> list[str]:
    """Return colours in order, light to dark, which differ in grey, too."""
    return [to_hex(matplotlib.colormaps["viridis"](tone)) for tone in np.linspace(0.88, 0, count)]


def losses(panel: str, letter: str, name: str, arrays: Mapping[str, np.ndarray]) -> list[Curve]:
    """Return the exact risk during training at every value of `name`, then that of the minibatch runs."""
    values = arrays[name].tolist()
    colors = dict(zip(values, shades(len(values)), strict=True))
    curves = [
        Curve(panel, f"{letter} = {value:g}", colors[value], arrays["steps_S"], risk_RS)
        for value, risk_RS in zip(values, arrays["risk_XRS"], strict=True)
    ]
    short = arrays[f"minibatch_{name}"].tolist()
    for value, risk_RS in zip(short, arrays.get("minibatch_risk_XRS", ()), strict=True):
        series, color = f"{letter} = {value:g}, {SHORT}", colors.get(value, GREY)
        curves.append(Curve(panel, series, color, arrays["minibatch_steps_S"], risk_RS, DOTTED))
    return curves


def legend(axes: Axes, **kwargs: Any) -> None:
    """Add a legend with one entry for all minibatch runs: each has the colour of its long run."""
    entries = zip(*axes.get_legend_handles_labels(), strict=True)
    kept = {text: handle for handle, text in entries if SHORT not in text}
    if len(kept) < len(axes.get_legend_handles_labels()[1]):
        kept[SHORT] = Line2D([], [], color=GREY, **DOTTED)
    axes.legend(kept.values(), kept.keys(), **kwargs)


def step_axis(axes: Axes, last: float) -> None:
    """Make the steps' axis logarithmic, with room for step 0."""
    axes.set_xscale("symlog", linthresh=1, linscale=0.3)
    axes.set(xlim=(0, last), xlabel="step")
