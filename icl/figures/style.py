"""One style for every figure: paper size, colour-blind-safe, a band over seeds, exact values dashed.

S or R seeds, T or X points, Q quantiles, I and J rows and columns of a matrix.
`style` goes to matplotlib. Give no line widths, mark sizes and font sizes: a user's style sets them.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps, rcParams
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.offsetbox import AnchoredText
from matplotlib.patches import Rectangle
from matplotlib.ticker import FormatStrFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator
from numpy.typing import ArrayLike

from icl.figures.look import current

# Okabe and Ito's palette, told apart with any colour vision.
BLUE, ORANGE, GREEN, RED, PURPLE, SKY, GREY = (
    "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#666666",
)  # fmt: skip
ON_LIGHT, ON_DARK = "#111111", "#fefefe"  # text on a coloured cell: the same on a light and on a dark page
PANEL = (2.5, 2.0)  # inches
MOST_POWERS = 4  # of ten, that have a label each on an axis of steps
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
    "lines.markersize": 3.5,
    "lines.dashed_pattern": (4, 2),
    "legend.frameon": False,
    "pdf.fonttype": 42,
    "svg.fonttype": "path",  # the reader need not have our fonts
    "svg.hashsalt": "icl",
    "mathtext.fontset": "cm",
    "figure.autolayout": False,
    "figure.constrained_layout.use": False,
}


def rc() -> Any:
    """Return matplotlib's settings in the look in which figures are drawn now."""
    return current().rc(RC)


def band(axes: Axes, x_T: ArrayLike, y_ST: np.ndarray, color: str, label: str, **style: Any) -> None:
    """Draw the mean over seeds S, and the range between the smallest and largest seed."""
    axes.plot(x_T, y_ST.mean(0), color=color, label=label, **style)
    axes.fill_between(x_T, y_ST.min(0), y_ST.max(0), color=color, alpha=0.2, linewidth=0)


def quantiles(axes: Axes, x_T: ArrayLike, y_TQ: np.ndarray, color: str, label: str, **style: Any) -> None:
    """Draw the median with the band between a lower and an upper quantile, in the order low, median, high."""
    low_T, median_T, high_T = y_TQ.T
    axes.plot(x_T, median_T, color=color, label=label, **style)
    axes.fill_between(x_T, low_T, high_T, color=color, alpha=0.2, linewidth=0)


def points(axes: Axes, x_X: ArrayLike, y_XR: np.ndarray, color: str, label: str, **style: Any) -> None:
    """Draw the values of every seed at each x as open marks."""
    x_XR = np.broadcast_to(np.asarray(x_X)[:, None], y_XR.shape)
    open_marks = {"marker": "o", "markerfacecolor": "none", "linestyle": "none", "color": color} | style
    axes.plot(x_XR.ravel(), y_XR.ravel(), label=label, **open_marks)


def exact_line(axes: Axes, value: float, label: str, **style: Any) -> None:
    """Draw a value known exactly as a horizontal line."""
    axes.axhline(value, label=label, **_dashed() | style)


def exact_curve(axes: Axes, x_T: ArrayLike, y_T: ArrayLike, label: str, **style: Any) -> None:
    """Draw exact values as a function of x."""
    axes.plot(x_T, y_T, label=label, **_dashed() | style)


def _dashed() -> dict[str, Any]:
    return {"color": rcParams["text.color"], "linestyle": "--"}


def note(axes: Axes, text: str, loc: str) -> None:
    """Write words, if any, into a corner of a panel, such as what was not trained to its end."""
    if text:
        axes.add_artist(AnchoredText(text, loc, frameon=False, prop={"size": "medium", "color": RED}))


def mark(figure: Figure, text: str) -> None:
    """Write above a figure what it is not."""
    figure.suptitle(text, fontsize="medium", color=RED, wrap=True)


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


def step_axis(axes: Axes, last: float, label: str = "step") -> None:
    """Make the steps' axis logarithmic, with room for step 0; of many powers of ten every second is marked,
    the last among them."""
    axes.set_xscale("symlog", linthresh=1, linscale=0.5)
    powers = np.arange(int(np.log10(max(last, 1))), -1, -1)
    shown = powers[:: 1 if len(powers) <= MOST_POWERS else 2][::-1]
    axes.set_xticks([0, *10.0**shown], ["0", *(f"$10^{{{power}}}$" for power in shown)])
    axes.set(xlim=(0, last), xlabel=label)


def entry_text(entry: float) -> str:
    """Return a matrix entry in four characters and a sign: 12.3, 1.23, .12, 0."""
    if abs(entry) < 0.005:
        return "0"
    text = f"{abs(entry):.1f}" if abs(entry) >= 9.995 else f"{abs(entry):.2f}"
    return ("\N{MINUS SIGN}" if entry < 0 else "") + text.removeprefix("0")


def heatmap(
    axes: Axes,
    M_IJ: np.ndarray,
    title: str,
    bound: float | None = None,
    *,
    entries: bool = True,
    free: np.ndarray | None = None,
) -> AxesImage:
    """Draw a matrix with its entries written in, on a diverging scale from -bound to bound, or to the largest
    entry. Those of the mask `free` are outlined, those that are not finite are grey."""
    bound = float(np.abs(M_IJ).max()) if bound is None else bound
    colours = colormaps["RdBu_r"].with_extremes(bad="0.75")
    image = axes.imshow(np.zeros(M_IJ.shape), cmap=colours)
    axes.set(title=title, xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    cell = axes.bbox.width / figure_of(axes).dpi * 72 / M_IJ.shape[1]  # in points
    size = min(0.75 * rcParams["font.size"], cell / 2.9)
    for i, j in np.ndindex(M_IJ.shape) if entries else ():
        axes.text(j, i, "", ha="center", va="center", fontsize=size)
    outline(axes, () if free is None else np.argwhere(free))
    fill(image, M_IJ, bound)
    return image


def fill(image: AxesImage, M_IJ: np.ndarray, bound: float) -> None:
    """Show a matrix in a heatmap of this shape, and its entries where it has places for them."""
    image.set_data(np.ma.masked_invalid(M_IJ))
    image.set_clim(-bound, bound)
    assert image.axes is not None
    for text, entry in zip(image.axes.texts, M_IJ.flat, strict=False):
        text.set_text(entry_text(entry))
        text.set_color(ON_DARK if abs(entry) > 0.6 * bound else ON_LIGHT)


def outline(axes: Axes, cells: Iterable[Sequence[int]]) -> None:
    """Draw squares around these rows and columns of a matrix that `imshow` drew."""
    for row, column in cells:
        corner = column - 0.5, row - 0.5
        axes.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor=ON_LIGHT))


def figure_of(axes: Axes) -> Figure:
    figure = axes.get_figure(root=True)
    assert figure is not None
    return figure


def colour_bar(image: ScalarMappable, axes: Axes, shrink: float) -> None:
    bar = figure_of(axes).colorbar(image, ax=axes, shrink=shrink, pad=0.03)
    bar.outline.set_visible(False)


def shared_legend(parts: Iterable[Axes], place: Axes | Figure | None = None, **kwargs: Any) -> None:
    """Draw one legend of several panels, with one entry for each label: below the figure, which grows by it,
    in as many columns as it has room for; or in `place`, as `kwargs` say."""
    parts = list(parts)
    entries = [axes.get_legend_handles_labels() for axes in parts]
    handles = {label: handle for pair in entries for handle, label in zip(*pair, strict=True)}
    if not handles:
        return
    if place is not None:
        place.legend(handles.values(), handles.keys(), **kwargs)
        return
    figure = figure_of(parts[0])
    for columns in range(len(handles), 0, -1):
        legend = figure.legend(
            handles.values(), handles.keys(), loc="outside lower center", ncols=columns, **kwargs
        )
        size = legend.get_window_extent()
        if columns == 1 or size.width <= 0.95 * figure.bbox.width:  # other formats have wider letters
            break
        legend.remove()
    figure.set_figheight(figure.get_figheight() + size.height / figure.dpi)
