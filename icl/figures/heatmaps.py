"""Pictures of the weights while they converge, as in the ahn paper's Figures 2, 4 and 5.

R replicas, L layers, H heads, D covariates, P = D + 1 token width.
"""

from __future__ import annotations

import functools
import io
import math
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from icl.errors import one_of

if TYPE_CHECKING:
    from matplotlib.colorbar import Colorbar
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage
    from matplotlib.text import Text

Array = NDArray[np.floating]
Panels = dict[str, dict[str, Array]]

ANNOTATED_SIZE = 8  # larger matrices have no room for numbers
ANNOTATED_ENTRIES = 256  # in all; writing more takes longer than the training steps between two pictures
COLUMNS = 6
_PANEL, _GAP, _TITLE, _LABEL, _BAR = 1.7, 0.16, 0.34, 0.26, 0.55  # inches


def panels_of(
    matrices: Mapping[str, Array],
    root_RDD: Array | None = None,
    seeds: str = "mean",
    labels: Sequence[int] | None = None,
    free: Collection[str] = (),
) -> Panels:
    """Return matrices (R, L, rows, columns) or (R, L, H, rows, columns) by name and label, the mean over
    replicas, or `seeds="each"`, named by `labels`.

    Sigma^{1/2} A Sigma^{1/2} where root_RDD, each replica's Sigma^{1/2}, is given; P and Q as W_V and W_QK
    where these are the names with free entries.
    """
    one_of("seeds", seeds, ("mean", "each"))
    shown = dict(matrices)
    if {"P", "Q"} <= set(shown) and {"W_V", "W_QK"} <= set(free):
        shown |= {"W_V": shown.pop("P").swapaxes(-1, -2), "W_QK": shown.pop("Q").swapaxes(-1, -2)}
    panels: Panels = {}
    for name, stack_R in shown.items():
        around = ""
        if name == "A" and root_RDD is not None:
            stack_R, around = root_RDD[:, None] @ stack_R @ root_RDD[:, None], r"\Sigma^{1/2}"
        of_seeds = zip(labels or range(len(stack_R)), stack_R, strict=True)
        several = {f"{name}/seed_{label}": stack for label, stack in of_seeds}
        for key, stack in (several if seeds == "each" else {name: stack_R.mean(0)}).items():
            stack = stack[:, 0] if stack.ndim == 4 and stack.shape[1] == 1 else stack  # of one head
            places = [*np.ndindex(stack.shape[:-2])]
            panels[key] = {
                f"${around}{_letter(name, place if len(places) > 1 else ())}{around}$": stack[place]
                for place in places
            }
    return panels


def _letter(name: str, place: Sequence[int]) -> str:
    """Return the name in mathematics, with W_QK's letters and the layer and head together below W."""
    letter, *below = [*name.split("_", 1), *map(str, place)]
    return f"{letter}_{{{','.join(below)}}}" if below else letter


def root_of(arrays: Mapping[str, Array]) -> Array | None:
    """Sigma^{1/2} of each replica, where a law stores a Sigma among its arrays."""
    import torch

    from icl.tasks.distances import symmetric_root

    Sigma_RDD = arrays.get("Sigma")
    return None if Sigma_RDD is None else symmetric_root(torch.from_numpy(Sigma_RDD)).numpy()


def free_of(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Return the entries (rows, columns) that a theorem leaves free, by the name of the matrix."""
    stored = {name.removeprefix("free_"): M for name, M in arrays.items() if name.startswith("free_")}
    return {name: mask_RIJ[0] for name, mask_RIJ in stored.items()}


def largest(matrices: Iterable[Array]) -> float:
    entries = np.concatenate([np.abs(matrix[np.isfinite(matrix)]) for matrix in matrices])
    return float(entries.max(initial=0)) or 1.0


def heatmap_png(
    matrices: Mapping[str, Array],
    title: str,
    *,
    vmax: float | None = None,
    free: Mapping[str, Array] | None = None,
) -> bytes:
    """Draw the matrices side by side in one PNG, on one colour scale from -vmax to vmax (their largest
    entry), the entries of the masks `free` outlined.

    Entries are written into matrices of at most 8 x 8 where they are at most 256 in all, without the zero
    before the point; entries that are not finite are grey.
    """
    from matplotlib import rc_context

    from icl.figures.style import entry_text, fill, rc

    shapes = tuple(matrix.shape for matrix in matrices.values())
    few = max(map(max, shapes)) <= ANNOTATED_SIZE and sum(map(math.prod, shapes)) <= ANNOTATED_ENTRIES
    bound = vmax or largest(matrices.values())
    power = math.floor(math.log10(bound))  # of ten, taken out so that three digits say something
    power = 0 if power in (-1, 0, 1) else power
    scale = bound / 10.0**power
    masks = tuple((label, tuple(map(tuple, mask.tolist()))) for label, mask in (free or {}).items())
    with _drawing, rc_context(rc()):
        page = _page(tuple(matrices), shapes, few, masks)
        page.title.set_text(title + (rf"  (entries $\times\,10^{{{power}}}$)" if power else ""))
        for image, matrix in zip(page.images, matrices.values(), strict=True):
            fill(image, matrix / 10.0**power, scale)
        page.bar.ax.set_yticklabels([entry_text(entry) for entry in (-scale, 0, scale)])
        png = io.BytesIO()
        page.figure.savefig(png, format="png")
    return png.getvalue()


class _Page(NamedTuple):
    figure: Figure
    title: Text
    images: list[AxesImage]
    bar: Colorbar


_drawing = threading.Lock()  # of a page, by one thread at a time


@functools.lru_cache(maxsize=8)
def _page(
    labels: tuple[str, ...],
    shapes: tuple[tuple[int, ...], ...],
    entries: bool,
    masks: tuple[tuple[str, tuple[tuple[bool, ...], ...]], ...],
) -> _Page:
    """Return panels and a colour bar to be filled in: kept, since pictures of several steps and runs differ
    in nothing else, and building them takes as long as filling them."""
    # Without pyplot: no global state, no window. The canvas keeps its renderer, and that the parsed labels.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

    from icl.figures.style import heatmap

    columns = min(len(labels), COLUMNS)
    width = columns * (_PANEL + _GAP) + _GAP + _BAR
    height = _TITLE + math.ceil(len(labels) / columns) * (_LABEL + _PANEL + _GAP)

    def place(left: float, top: float, wide: float) -> tuple[float, float, float, float]:
        """Return a place by inches from the upper left corner: exact, and faster than a layout engine."""
        return left / width, 1 - (top + _PANEL) / height, wide / width, _PANEL / height

    figure = Figure(figsize=(width, height), dpi=120)
    FigureCanvasAgg(figure)
    title, images = figure.text(_GAP / width, 1 - _TITLE / 2 / height, "", va="center"), []
    free = {label: np.array(mask) for label, mask in masks}
    for index, (label, shape) in enumerate(zip(labels, shapes, strict=True)):
        row, column = divmod(index, columns)
        top = _TITLE + row * (_LABEL + _PANEL + _GAP) + _LABEL
        axes = figure.add_axes(place(_GAP + column * (_PANEL + _GAP), top, _PANEL))
        images.append(heatmap(axes, np.zeros(shape), label, 1.0, entries=entries, free=free.get(label)))
    of_bar = figure.add_axes(place(width - _BAR, _TITLE + _LABEL, 0.1))
    bar = figure.colorbar(ScalarMappable(Normalize(-1, 1), images[0].cmap), cax=of_bar, ticks=[-1, 0, 1])
    return _Page(figure, title, images, bar)
