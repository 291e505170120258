"""Figures that draw given records and train nothing."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure


def unbuilt(cls: type, **settings: Any) -> Any:
    """Return a figure that can draw and judge records, with these of its settings alone."""
    figure = cls.__new__(cls)
    vars(figure).update(settings)
    return figure


def covered(figure: Figure) -> list[str]:
    """Return the panels whose curves pass below their legend: points along each curve, in pixels."""
    figure.draw_without_rendering()
    found = []
    for axes in figure.axes:
        if (legend := axes.get_legend()) is None:
            continue
        box = legend.get_window_extent()
        for line in (line for line in axes.lines if len(line.get_xydata())):
            x_T, y_T = np.asarray(line.get_transform().transform(line.get_xydata())).T
            at = np.arange(len(x_T))
            is_drawn = line.get_linestyle() not in ("None", "none", "")  # else only its marks are
            along = np.linspace(0, len(x_T) - 1, 400 * len(x_T)) if is_drawn else at
            x_T, y_T = np.interp(along, at, x_T), np.interp(along, at, y_T)
            if ((x_T > box.x0) & (x_T < box.x1) & (y_T > box.y0) & (y_T < box.y1)).any():
                found.append(axes.get_title())
    return found
