"""Legends beside the data, and tick labels beside one another: settled once a figure is drawn."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import Collection
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator
from matplotlib.transforms import Bbox

from icl.figures.style import figure_of
from icl.look import current

PLACES = (
    "upper right", "upper left", "lower left", "lower right", "center left", "center right",
    "upper center", "lower center", "center",
)  # fmt: skip
HIGHEST = 0.35  # of an axes' height, which a legend above the data may take
_NONE = ("None", "none", "", " ", None)  # matplotlib's names of no line and no marker
GAP, TICK_GAP = 2.0, 8.0  # pixels between a legend and what is drawn, and between tick labels
_WORD = re.compile(r"(?:\$[^$]*\$|\S)+")  # a formula is one
_PASSES = 3  # of the layout, each of which may shift what the one before has placed


def settle(figure: Figure) -> None:
    """Move each legend off the data of its axes, or below the figure where it finds no place; drop tick
    labels that would overlap. A figure whose width is not given grows by the legends beside its panels."""
    for _, legend in _legends(figure):
        legend.set_in_layout(False)  # what lies in its axes needs no room of its own
    figure.draw_without_rendering()
    beside = [(axes, legend) for axes, legend in _legends(figure) if _is_beside(axes, legend)]
    if current().width is not None:
        _below(figure, [legend for _, legend in beside])
        for axes, _ in beside:
            if not axes.axison:
                axes.remove()
    else:
        for _, legend in beside:
            legend.set_in_layout(True)
        wide = [legend.get_window_extent().width for axes, legend in beside if axes.axison]
        figure.set_figwidth(figure.get_figwidth() + max(wide, default=0.0) / figure.dpi)
        if any(legend.get_window_extent().width > figure.bbox.width for legend in figure.legends):
            _below(figure, [])  # in fewer columns
    for _ in range(_PASSES):
        figure.draw_without_rendering()
        moved = [_thin(axis) for axes in _visible(figure) for axis in (axes.xaxis, axes.yaxis)]
        moved += [_wrap_titles(axes) for axes in _visible(figure)]
        homeless = []
        for axes, legend in _legends(figure):
            if _is_beside(axes, legend) or _is_off_data(axes, legend):
                continue
            moved.append(_find_place(axes, legend))
            if not moved[-1]:
                homeless.append(legend)
        if homeless:
            _below(figure, homeless)
        elif not any(moved):
            break


def _legends(figure: Figure) -> list[tuple[Axes, Legend]]:
    found = ((axes, axes.get_legend()) for axes in _visible(figure))
    return [(axes, legend) for axes, legend in found if legend is not None]


def overlaps(axes: Axes, box: Bbox) -> bool:
    """Return whether anything drawn in the axes reaches into a box in pixels."""
    return any(_reaches(artist, box) for artist in _drawn(axes))


def _drawn(axes: Axes) -> Iterator[Any]:
    yield from axes.lines
    yield from axes.collections
    yield from axes.patches
    yield from axes.images
    yield from axes.texts


def _reaches(artist: Any, box: Bbox) -> bool:
    if not artist.get_visible():
        return False
    if isinstance(artist, Line2D):
        path = artist.get_transform().transform_path(artist.get_path())
        if artist.get_linestyle() not in _NONE and path.intersects_bbox(box, filled=False):
            return True
        wide = box if artist.get_marker() in _NONE else box.padded(artist.get_markersize())
        points = np.asarray(path.vertices)
        points = points[np.isfinite(points).all(-1)]
        return bool(((points > np.array(wide.min)) & (points < np.array(wide.max))).all(-1).any())
    if isinstance(artist, Collection):
        transform = artist.get_transform()
        return any(transform.transform_path(p).intersects_bbox(box, filled=True) for p in artist.get_paths())
    return bool(artist.get_window_extent().overlaps(box))


def _visible(figure: Figure) -> list[Axes]:
    return [axes for axes in figure.axes if axes.get_visible()]


def _extent(legend: Legend) -> Bbox:
    box: Bbox = legend.get_window_extent().padded(GAP)
    return box


def _is_beside(axes: Axes, legend: Legend) -> bool:
    """Return whether the legend has a place of its own: right of its axes, or in empty ones."""
    return legend.get_window_extent().x0 >= axes.bbox.x1 or not axes.axison


def _is_off_data(axes: Axes, legend: Legend) -> bool:
    """Return whether the legend lies within its axes, where nothing is drawn."""
    box, inside = _extent(legend), axes.bbox.padded(GAP)
    is_inside = inside.contains(box.x0, box.y0) and inside.contains(box.x1, box.y1)
    return bool(is_inside) and not overlaps(axes, box)


def _find_place(axes: Axes, legend: Legend) -> bool:
    """Move the legend to a free place of its axes, if need be above the data; return whether there is one."""
    for place in PLACES:
        _put(legend, place)
        if _is_off_data(axes, legend):
            return True
    box = _extent(legend)
    share = (box.height + 4 * GAP) / axes.bbox.height
    if share > HIGHEST or box.width > axes.bbox.width:
        return False
    _raise_top(axes, share)
    _put(legend, "upper right")
    return True


def _put(legend: Legend, place: Any) -> None:
    legend.set_bbox_to_anchor(None)  # type: ignore[arg-type]
    legend.set_loc(place)


def _raise_top(axes: Axes, share: float) -> None:
    """Leave this share of the axes' height free above what they show now, without tick labels."""
    ticks = [tick for tick in axes.get_yticks() if axes.get_ylim()[0] <= tick <= axes.get_ylim()[1]]
    scale, is_linear = axes.yaxis.get_transform(), axes.get_yscale() == "linear"
    low, high = scale.transform(np.array(axes.get_ylim()))
    top = scale.inverted().transform(np.array([low + (high - low) / (1 - share)]))
    axes.set_ylim(top=float(top[0]))
    if is_linear:
        axes.set_yticks(ticks)


def _below(figure: Figure, legends: Sequence[Legend]) -> None:
    """Move legends into the one of the figure, with one entry for each label and line."""
    entries: dict[tuple[str, str], Any] = {}
    every = [*figure.legends, *legends]
    title = next((legend.get_title().get_text() for legend in every if legend.get_title().get_text()), None)
    for legend in every:
        for handle, text in zip(legend.legend_handles, legend.get_texts(), strict=True):
            entries.setdefault((text.get_text(), _colour(handle)), handle)
        legend.remove()
    if not entries:
        return
    labels = [label for label, _ in entries]
    for columns in range(len(labels), 0, -1):
        drawn = figure.legend(
            entries.values(), labels, loc="outside lower center", ncols=columns, title=title
        )
        if columns == 1 or drawn.get_window_extent().width <= figure.bbox.width:
            break
        drawn.remove()
    figure.set_figheight(figure.get_figheight() + drawn.get_window_extent().height / figure.dpi)


def _colour(handle: Any) -> str:
    return str(handle.get_color() if isinstance(handle, Line2D) else handle.get_facecolor())


def _wrap_titles(axes: Axes) -> bool:
    """Break the axes' title and labels where they are longer than its place in the figure."""
    place = axes.get_subplotspec()
    if place is None:
        return False
    figure = figure_of(axes)
    width, height = place.get_position(figure).transformed(figure.transFigure).size
    along = [(axes.title, 0, width), (axes.xaxis.label, 0, width), (axes.yaxis.label, 1, height)]
    return any([_wrap(text, direction, length) for text, direction, length in along])


def _wrap(text: Text, direction: int, length: float) -> bool:
    words, whole = _WORD.findall(text.get_text()), text.get_window_extent().size[direction]
    if whole <= length or len(words) < 2 or "\n" in text.get_text():
        return False
    lines = [words[0]]
    for word in words[1:]:
        text.set_text(f"{lines[-1]} {word}")
        if text.get_window_extent().size[direction] <= length:
            lines[-1] = f"{lines[-1]} {word}"
        else:
            lines.append(word)
    text.set_text("\n".join(lines))
    return True


def _thin(axis: Axis) -> bool:
    """Drop tick labels that overlap the one before, of ticks at given values; turn words instead."""
    if not isinstance(axis.get_major_locator(), FixedLocator):
        return False
    places, labels = axis.get_majorticklocs(), axis.get_majorticklabels()
    texts = [label.get_text() for label in labels]
    shown = [label for label in labels if label.get_text()]
    boxes = [label.get_window_extent() for label in shown]
    along = 0 if axis is axis.axes.xaxis else 1
    ends = sorted((box.min[along], box.max[along]) for box in boxes)
    if all(after[0] >= before[1] + TICK_GAP for before, after in pairwise(ends)):
        return False
    if along == 0 and not all(map(_is_number, filter(None, texts))) and not shown[0].get_rotation():
        for label in labels:
            label.set(rotation=30, rotation_mode="anchor", ha="right", va="center")
        return True
    kept, end = [], -np.inf
    for place, label in sorted(zip(places, labels, strict=True), key=lambda pair: pair[0]):
        box = label.get_window_extent()
        fits = bool(label.get_text()) and box.min[along] >= end + TICK_GAP
        kept.append((place, label.get_text() if fits else ""))
        end = box.max[along] if fits else end
    axis.set_ticks([place for place, _ in kept], [text for _, text in kept])
    return True


def _is_number(text: str) -> bool:
    try:
        float(text.replace("\N{MINUS SIGN}", "-"))
    except ValueError:
        return False
    return True
