"""One style for every figure: paper size, colour-blind-safe, a band over seeds, exact values dashed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from matplotlib.ticker import FormatStrFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from icl.look import current

# Okabe and Ito's palette, told apart with any colour vision.
BLUE, ORANGE, GREEN, RED, PURPLE, SKY, GREY = (
    "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#666666",
)  # fmt: skip
ON_LIGHT, ON_DARK = "#111111", "#fefefe"  # text on a coloured cell: the same on a light and on a dark page
EXACT: dict[str, Any] = {"color": "black", "linestyle": (0, (4, 2)), "linewidth": 1.0}
PANEL = (2.5, 2.0)  # inches
RC: Any = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "legend.fontsize": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.2,
    "legend.frameon": False,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "mathtext.fontset": "cm",
    "figure.autolayout": False,
    "figure.constrained_layout.use": False,
}


def rc() -> Any:
    """Return matplotlib's settings in the look in which figures are drawn now."""
    return current().rc(RC)


def new_figure(inches: tuple[float, float]) -> Figure:
    """Return an empty figure, without pyplot's global state."""
    with rc_context(rc()):
        figure = Figure(figsize=inches, dpi=200, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def panels(
    rows: int,
    columns: int,
    size: tuple[float, float] = PANEL,
    widths: Sequence[float] = (),
    margin: float = 0.0,
) -> tuple[Figure, np.ndarray]:
    """Return a figure and its (rows, columns) axes.

    `size` is that of a panel, `widths` are the columns' where they differ; `margin` is added to the height.
    """
    inches = (sum(widths) or size[0] * columns, size[1] * rows + margin)
    figure = new_figure(inches)
    with rc_context(rc()):
        return figure, figure.subplots(rows, columns, squeeze=False, width_ratios=widths or None)


def band(
    axes: Axes, x_T: Sequence[float] | np.ndarray, y_ST: np.ndarray, color: str, label: str, **kwargs: Any
) -> None:
    """Draw the mean over seeds S, and the range between the smallest and largest seed."""
    axes.plot(x_T, y_ST.mean(0), color=color, label=label, **kwargs)
    axes.fill_between(x_T, y_ST.min(0), y_ST.max(0), color=color, alpha=0.2, linewidth=0)


def exact_line(axes: Axes, value: float, label: str, linestyle: Any = EXACT["linestyle"]) -> None:
    axes.axhline(value, label=label, **EXACT | {"linestyle": linestyle})


def log_axis(axes: Axes) -> None:
    """Make the y axis logarithmic, with labels at 1, 2, 5 where it spans less than three decades, and evenly
    spaced numbers where it spans less than a factor of four."""
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    if high < 1e3 * low:
        axes.yaxis.set_major_locator(MaxNLocator(5) if high < 4 * low else LogLocator(subs=(1, 2, 5)))
        if high < 4 * low:
            axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(FormatStrFormatter("%g"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def entry_text(entry: float) -> str:
    """Return a matrix entry in four characters and a sign: 12.3, 1.23, .12, 0."""
    if abs(entry) < 0.005:
        return "0"
    text = f"{abs(entry):.1f}" if abs(entry) >= 9.995 else f"{abs(entry):.2f}"
    return ("-" if entry < 0 else "") + text.removeprefix("0")


def heatmap(axes: Axes, M_IJ: np.ndarray, title: str, bound: float, *, bar: bool = False) -> None:
    """Draw a matrix with its entries written in, on a diverging scale from -bound to bound."""
    image = axes.imshow(M_IJ, cmap="RdBu_r", vmin=-bound, vmax=bound)
    axes.set_title(title)
    axes.set_xticks([])
    axes.set_yticks([])
    for (i, j), entry in np.ndenumerate(M_IJ):
        text = entry_text(float(entry))
        colour = ON_DARK if abs(entry) > 0.6 * bound else ON_LIGHT
        axes.text(j, i, text, ha="center", va="center", fontsize=6, color=colour)
    if bar:
        colour_bar(image, axes, 0.75)


def is_leftmost(axes: Axes) -> bool:
    """Return whether the axes are in the first column of the figure's grid."""
    place = axes.get_subplotspec()
    return place is not None and place.is_first_col()


def figure_of(axes: Axes) -> Figure:
    figure = axes.get_figure(root=True)
    assert figure is not None
    return figure


def colour_bar(image: ScalarMappable, axes: Axes, shrink: float) -> None:
    bar = figure_of(axes).colorbar(image, ax=axes, shrink=shrink, pad=0.03)
    bar.ax.tick_params(labelsize=6)
    bar.outline.set_visible(False)


def shared_legend(parts: Iterable[Axes], place: Axes | Figure, **kwargs: Any) -> None:
    """Put one legend of several panels into `place`, with one entry for each label."""
    entries = [axes.get_legend_handles_labels() for axes in parts]
    handles = {label: handle for pair in entries for handle, label in zip(*pair, strict=True)}
    place.legend(handles.values(), handles.keys(), **kwargs)


def off_identity(M_XIJ: np.ndarray) -> np.ndarray:
    """Return the largest entry of |M - m I| over |m|, m the mean of the diagonal; leading axes are kept."""
    m_X11 = np.trace(M_XIJ, axis1=-2, axis2=-1)[..., None, None] / M_XIJ.shape[-1]
    return (np.abs(M_XIJ - m_X11 * np.eye(M_XIJ.shape[-1])) / np.abs(m_X11)).max((-2, -1))
