"""What a reader sees of a picture."""

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D

TOUCH = -1.0  # pixels by which two words may overlap: they keep a distance


def faults(figure: Figure) -> list[str]:
    """Return what a reader would object to: curves below a legend, entries that look or read alike, words
    that overlap or leave the picture."""
    figure.draw_without_rendering()
    found = [f"covered: {axes.get_title()}" for axes in figure.axes if _is_covered(axes)]
    for legend in legends(figure):
        pairs = zip(legend.get_texts(), legend.legend_handles, strict=True)
        entries = [(text.get_text(), _looks(handle)) for text, handle in pairs]
        for (one, look), (other, same) in combinations(entries, 2):
            if one == other or (look is not None and look == same):
                found.append(f"alike: {one}, {other}")
    words = [*_words(figure)]
    found += [f"leaves the picture: {text}" for text, box in words if not _is_inside(box, figure)]
    for (one, box), (other, beside) in combinations(words, 2):
        low, high = np.maximum(box.min, beside.min), np.minimum(box.max, beside.max)
        if (high - low).min() > TOUCH:
            found.append(f"overlap: {one}, {other}")
    return found


def legends(figure: Figure) -> list[Legend]:
    return [*figure.legends, *(one for axes in figure.axes if (one := axes.get_legend()) is not None)]


def widths(figure: Figure) -> set[float]:
    """Return the widths of all lines, those of legends too."""
    panels = [axes for axes in figure.axes if axes.get_label() != "<colorbar>"]
    lines = [line for axes in panels for line in axes.lines]
    lines += [handle for legend in legends(figure) for handle in legend.legend_handles]
    found = {line.get_linewidth() for line in lines if isinstance(line, Line2D)}
    bars = [one for axes in panels for one in axes.collections if isinstance(one, LineCollection)]
    return found | {float(width) for bar in bars for width in bar.get_linewidths()}


def _looks(handle: Any) -> Any:
    """Return what tells one entry from another."""
    if not isinstance(handle, Line2D):
        return None
    marker, style = handle.get_marker(), handle.get_linestyle()
    return str(handle.get_color()), str(marker), style, str(handle.get_markerfacecolor())


def _is_covered(axes: Axes) -> bool:
    """Return whether curves pass below the legend: points along each curve, in pixels."""
    if (legend := axes.get_legend()) is None:
        return False
    box = legend.get_window_extent()
    for line in (line for line in axes.lines if len(line.get_xydata())):
        x_T, y_T = np.asarray(line.get_transform().transform(line.get_xydata())).T
        at = np.arange(len(x_T))
        is_drawn = line.get_linestyle() not in ("None", "none", "")  # else only its marks are
        along = np.linspace(0, len(x_T) - 1, 400 * len(x_T)) if is_drawn else at
        x_T, y_T = np.interp(along, at, x_T), np.interp(along, at, y_T)
        if ((x_T > box.x0) & (x_T < box.x1) & (y_T > box.y0) & (y_T < box.y1)).any():
            return True
    return False


def _words(figure: Figure) -> Iterator[tuple[str, Any]]:
    """Yield titles, labels, numbers of the axes, legends' and other texts with their places."""
    texts = [*figure.texts]
    for axes in (axes for axes in figure.axes if axes.get_visible()):
        texts += [axes.title, axes._left_title, axes.xaxis.label, axes.yaxis.label]
        texts += [text for text in axes.texts if not axes.images]  # in a matrix they are small by design
        for axis, ends in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
            ticks = [tick for tick in axis.get_major_ticks() if min(ends) <= tick.get_loc() <= max(ends)]
            texts += [label for tick in ticks for label in (tick.label1, tick.label2)]
    texts += [text for legend in legends(figure) for text in legend.get_texts()]
    for text in texts:
        if text.get_visible() and text.get_text().strip():
            yield text.get_text(), text.get_window_extent()


def _is_inside(box: Any, figure: Figure) -> bool:
    return bool((box.min >= -TOUCH).all() and (box.max <= figure.bbox.max + TOUCH).all())


def content(figure: Figure) -> list[list[Any]]:
    """Return each panel's words and scales, how much it draws, the limits of its data, and of each curve and
    image the sum."""
    panels = []
    for axes in figure.axes:
        kinds = [[*axes.lines], [*axes.images], [*axes.patches], [*axes.collections]]
        words = [axes.get_title(), axes.get_xlabel(), axes.get_ylabel(), axes.get_xscale(), axes.get_yscale()]
        labels = [str(one.get_label()) for kind in kinds for one in kind]
        words += [label for label in labels if not label.startswith("_")]
        values = [line.get_ydata() for line in axes.lines] + [one.get_array() for one in axes.images]
        sums = [value[np.isfinite(value)].sum() for value in (np.asarray(one, float) for one in values)]
        numbers = [float(f"{one:.7g}") for one in (*axes.dataLim.extents, *sums)]
        panels.append([" | ".join(words), *map(len, kinds), *numbers])
    return panels
