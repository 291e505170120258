"""Pictures of the weights while they converge, as in the ahn paper's Figures 2, 4 and 5.

R replicas, L layers, H heads, D covariates, P = D + 1 token width.
"""

from __future__ import annotations

import functools
import io
import math
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from icl.errors import one_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage
    from matplotlib.text import Text

Array = NDArray[np.floating]
Panels = dict[str, dict[str, Array]]

ANNOTATED_SIZE = 8  # larger matrices have no room for numbers
ANNOTATED_ENTRIES = 256  # in all; writing more takes longer than the training steps between two pictures
COLUMNS = 6
_PANEL, _GAP, _TITLE, _LABEL, _BAR = 1.7, 0.16, 0.34, 0.26, 0.55  # inches
_COLOURS = "RdBu_r"  # diverging, and told apart with any colour vision


def panels_of(
    matrices: Mapping[str, Array],
    root_RDD: Array | None,
    seeds: str = "mean",
    labels: Sequence[int] | None = None,
    free: Collection[str] = (),
) -> Panels:
    """Return all matrices (R, ..., rows, columns) by name, A where Sigma is the identity; P and Q
    as W_V and W_QK where these are the names with free entries."""
    panels: Panels = {}
    rest = dict(matrices)
    if {"P", "Q"} <= set(rest) and {"W_V", "W_QK"} <= set(free):
        rest |= {"W_V": rest.pop("P").swapaxes(-1, -2), "W_QK": rest.pop("Q").swapaxes(-1, -2)}
    if "A" in rest and root_RDD is not None:
        panels |= weight_panels(rest.pop("A"), root_RDD, rest.pop("B", None), seeds, labels)
    if {"P", "Q"} <= set(rest):
        P, Q = (M[:, :, None] if M.ndim == 4 else M for M in (rest.pop("P"), rest.pop("Q")))
        panels |= stack_panels(P, Q, seeds, labels)
    stacks = {name: M.reshape(len(M), -1, *M.shape[-2:]) for name, M in rest.items()}
    return panels | matrix_panels(stacks, seeds, labels)


def root_of(arrays: Mapping[str, Array]) -> Array | None:
    """Sigma^{1/2} of each replica, where a law stores a Sigma among its arrays."""
    import torch

    from icl.theory.distance import symmetric_root

    Sigma_RDD = arrays.get("Sigma")
    return None if Sigma_RDD is None else symmetric_root(torch.from_numpy(Sigma_RDD)).numpy()


def free_of(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Return the entries (rows, columns) that a theorem leaves free, by the name of the matrix."""
    stored = {name.removeprefix("free_"): M for name, M in arrays.items() if name.startswith("free_")}
    return {name: mask_RIJ[0] for name, mask_RIJ in stored.items()}


def outline(axes: Axes, entries: Iterable[tuple[int, int]]) -> None:
    """Draw squares around these entries of a matrix that `imshow` drew."""
    from matplotlib.patches import Rectangle

    for row, column in entries:
        corner = column - 0.5, row - 0.5
        axes.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor="black", linewidth=0.9))


def weight_panels(
    A_RLDD: Array,
    root_RDD: Array,
    B_RLDD: Array | None = None,
    seeds: str = "mean",
    labels: Sequence[int] | None = None,
) -> Panels:
    """Sigma^{1/2} A_l Sigma^{1/2} (root_RDD is each replica's Sigma^{1/2}) and B_l, one picture each.

    `seeds`: "mean" over replicas, or "each" its own picture, named by `labels` (0, 1, ... without).
    """
    stacks: dict[str, tuple[str, Array]] = {
        "A": (r"\Sigma^{1/2}A_{%d}\Sigma^{1/2}", root_RDD[:, None] @ A_RLDD @ root_RDD[:, None])
    }
    if B_RLDD is not None:
        stacks["B"] = ("B_{%d}", B_RLDD)
    return {
        name + suffix: {f"${label % layer}$": matrix_DD for layer, matrix_DD in enumerate(stack_LDD)}
        for name, (label, stack_RLDD) in stacks.items()
        for suffix, stack_LDD in _by_seed(stack_RLDD, seeds, labels)
    }


def stack_panels(
    P_RLHPP: Array, Q_RLHPP: Array, seeds: str = "mean", labels: Sequence[int] | None = None
) -> Panels:
    """P_{l,h} and Q_{l,h} of every layer and head as they are; the head's index is left out where H = 1."""
    heads = P_RLHPP.shape[2]
    return {
        letter + suffix: {
            f"${letter}_{{{layer}}}$" if heads == 1 else f"${letter}_{{{layer},{head}}}$": stack_LHPP[
                layer, head
            ]
            for layer in range(stack_LHPP.shape[0])
            for head in range(heads)
        }
        for letter, stack_RLHPP in (("P", P_RLHPP), ("Q", Q_RLHPP))
        for suffix, stack_LHPP in _by_seed(stack_RLHPP, seeds, labels)
    }


def matrix_panels(
    stacks: Mapping[str, Array], seeds: str = "mean", labels: Sequence[int] | None = None
) -> Panels:
    """Stacks of matrices (R, L, rows, columns) as they are, one picture for each name."""
    return {
        name + suffix: {_label(name, i if len(stack) > 1 else None): M for i, M in enumerate(stack)}
        for name, stack_RLIJ in stacks.items()
        for suffix, stack in _by_seed(stack_RLIJ, seeds, labels)
    }


def _label(name: str, index: int | None) -> str:
    """Return the name in mathematics, with W_QK's letters together below W."""
    letter, *below = name.split("_", 1) + ([] if index is None else [str(index)])
    return f"${letter}_{{{','.join(below)}}}$" if below else f"${letter}$"


def _by_seed(stack_R: Array, seeds: str, labels: Sequence[int] | None) -> list[tuple[str, Array]]:
    one_of("seeds", seeds, ("mean", "each"))
    if seeds == "mean":
        return [("", stack_R.mean(axis=0))]
    names = range(len(stack_R)) if labels is None else labels
    return [(f"/seed_{name}", stack) for name, stack in zip(names, stack_R, strict=True)]


def heatmap_png(
    matrices: Mapping[str, Array],
    title: str,
    *,
    annotate: bool = True,
    vmax: float | None = None,
    free: Array | None = None,
) -> bytes:
    """Draw the matrices side by side in one PNG, on one colour scale from -vmax to vmax (their largest
    entry), the entries of the mask `free` outlined.

    Entries are written into matrices of at most 8 x 8 where they are at most 256 in all, without the zero
    before the point; entries that are not finite are grey.
    """
    outlined = () if free is None else tuple((int(row), int(column)) for row, column in np.argwhere(free))
    shapes = tuple(matrix.shape for matrix in matrices.values())
    few = max(map(max, shapes)) <= ANNOTATED_SIZE and sum(map(math.prod, shapes)) <= ANNOTATED_ENTRIES
    with _drawing:
        page = _page(tuple(matrices), shapes, outlined, annotate and few)
        return page.png(list(matrices.values()), title, vmax or largest(matrices.values()))


class _Page:
    """Labelled panels, a colour bar and places for numbers, which `png` fills in.

    Pictures of a matrix at several steps or of several runs differ in nothing else, and laying a page out
    takes longer than filling it.
    """

    def __init__(
        self,
        labels: Sequence[str],
        shapes: Sequence[tuple[int, ...]],
        outlined: Sequence[tuple[int, int]],
        annotate: bool,
    ) -> None:
        # Figure and Agg without pyplot: no global state, no window, usable from any thread.
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import Normalize
        from matplotlib.figure import Figure

        columns = min(len(labels), COLUMNS)
        rows = math.ceil(len(labels) / columns)
        width = columns * _PANEL + (columns + 1) * _GAP + _BAR
        height = _TITLE + rows * (_LABEL + _PANEL + _GAP)
        self.figure = Figure(figsize=(width, height), dpi=120)
        FigureCanvasAgg(self.figure)

        def add_axes(left: float, top: float, wide: float, high: float) -> Axes:
            """Add axes by inches from the upper left corner: exact, and faster than a layout engine."""
            return self.figure.add_axes(
                (left / width, 1 - (top + high) / height, wide / width, high / height)
            )

        self.title = self.figure.text(_GAP / width, 1 - _TITLE / 2 / height, "", fontsize=9, va="center")
        colours = matplotlib.colormaps[_COLOURS].with_extremes(bad="0.75")
        self.images: list[AxesImage] = []
        self.entries: list[list[Text]] = []
        for index, (label, shape) in enumerate(zip(labels, shapes, strict=True)):
            row, column = divmod(index, columns)
            top = _TITLE + row * (_LABEL + _PANEL + _GAP) + _LABEL
            axes = add_axes(_GAP + column * (_PANEL + _GAP), top, _PANEL, _PANEL)
            self.images.append(axes.imshow(np.zeros(shape), cmap=colours))
            axes.set(xticks=[], yticks=[])
            axes.set_title(label, fontsize=9, pad=4)
            self.entries.append(_places(axes, shape) if annotate else [])
            outline(axes, outlined)
        bar = add_axes(width - _BAR, _TITLE + _LABEL, 0.1, _PANEL)
        scale = ScalarMappable(Normalize(-1, 1), colours)  # its own: that of an image would be laid out anew
        self.bar = self.figure.colorbar(scale, cax=bar, ticks=[-1, 0, 1])

    def png(self, matrices: Sequence[Array], title: str, bound: float) -> bytes:
        """Return the page with these matrices, colours from -bound to bound."""
        power = _power(bound)
        scale = rf"  (entries $\times\,10^{{{power}}}$)" if power else ""
        self.title.set_text(title + scale)
        ticks = [_number(tick / 10.0**power) for tick in (-bound, 0, bound)]
        self.bar.ax.set_yticklabels(ticks, fontsize=7)
        for image, texts, matrix in zip(self.images, self.entries, matrices, strict=True):
            image.set_data(np.ma.masked_invalid(matrix))
            image.set_clim(-bound, bound)
            for text, entry in zip(texts, matrix.flat, strict=False):
                text.set_text(_number(float(entry) / 10.0**power))
                text.set_color("white" if abs(entry) > 0.6 * bound else "black")
        page = io.BytesIO()
        self.figure.savefig(page, format="png")
        return page.getvalue()


_page = functools.lru_cache(maxsize=8)(_Page)
_drawing = threading.Lock()  # of a page, by one thread at a time


def largest(matrices: Iterable[Array]) -> float:
    entries = np.concatenate([np.abs(matrix[np.isfinite(matrix)]) for matrix in matrices])
    return float(entries.max(initial=0)) or 1.0


def _power(bound: float) -> int:
    """Return the power of ten to take out so that three digits say something."""
    power = math.floor(math.log10(bound))
    return 0 if power in (-1, 0, 1) else power


def _number(value: float) -> str:
    if not math.isfinite(value):
        return str(value)
    text = f"{value:.2f}" if abs(value) < 9.995 else f"{value:.1f}"
    if float(text) == 0:
        return "0"
    return text.replace("0.", ".", 1 if abs(value) < 1 else 0).replace("-", "\N{MINUS SIGN}")


def _places(axes: Axes, shape: tuple[int, ...]) -> list[Text]:
    """Return an empty text in the middle of each entry."""
    size = min(8.0, 42 / max(shape))
    return [
        axes.text(column, row, "", ha="center", va="center", fontsize=size)
        for row, column in np.ndindex(*shape)
    ]
