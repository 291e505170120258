"""Test where legends and tick labels go, and figures at a width and in a style."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from icl.errors import InputError
from icl.figures.drawing import Drawing, Layout
from icl.figures.items import Curve, Level
from icl.figures.legends import settle
from icl.figures.style import BLUE, panels
from icl.look import Look, drawn_as

STYLE = "font.size: 10\nfont.family: serif\nlines.linewidth: 0.5\n"


def inside(box: Bbox, x_T: np.ndarray, y_T: np.ndarray) -> bool:
    return bool(((x_T > box.x0) & (x_T < box.x1) & (y_T > box.y0) & (y_T < box.y1)).any())


def covered(figure: Figure) -> list[str]:
    """Return the panels whose curves pass below their legend: points along each curve, in pixels."""
    figure.draw_without_rendering()
    found = []
    for axes in figure.axes:
        if (legend := axes.get_legend()) is None:
            continue
        box = legend.get_window_extent()
        for line in axes.lines:
            x_T, y_T = np.asarray(line.get_transform().transform(line.get_xydata())).T
            at = np.arange(len(x_T))
            is_drawn = line.get_linestyle() not in ("None", "none", "")  # else only its marks are
            along = np.linspace(0, len(x_T) - 1, 400 * len(x_T)) if is_drawn else at
            if inside(box, np.interp(along, at, x_T), np.interp(along, at, y_T)):
                found.append(axes.get_title())
    return found


def crowded(count: int) -> tuple[Figure, Axes]:
    """Return axes full of curves, with a legend of this many entries in a corner of them."""
    figure, axes = panels(1, 1)
    x_T = np.linspace(0, 1, 50)
    for number in range(60):
        axes[0, 0].plot(x_T, np.sin(9 * x_T + number), label=f"curve {number}" if number < count else None)
    axes[0, 0].legend(loc="upper right")
    return figure, axes[0, 0]


@pytest.mark.parametrize("count", [2, 12])
def test_a_legend_without_a_free_place_goes_above_or_below(count: int) -> None:
    figure, axes = crowded(count)
    assert covered(figure)
    settle(figure)
    assert covered(figure) == []
    (legend,) = [axes.get_legend()] if count == 2 else figure.legends
    assert legend is not None and [t.get_text() for t in legend.get_texts()] == [
        f"curve {number}" for number in range(count)
    ]
    assert (axes.get_legend() is None) == (count == 12)


def test_a_legend_below_is_no_wider_than_the_figure() -> None:
    figure, axes = panels(1, 1)
    lines = [axes[0, 0].plot([0, 1], [0, 1], color=f"C{i}")[0] for i in range(6)]
    labels = [f"a curve of number {i}" for i in range(6)]
    (legend,) = [figure.legend(lines, labels, loc="outside lower center", ncols=6)]
    assert legend.get_window_extent().width > figure.bbox.width
    settle(figure)
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == labels
    assert legend.get_window_extent().width <= figure.bbox.width


def test_a_legend_that_covers_nothing_stays() -> None:
    figure, axes = panels(1, 1)
    axes[0, 0].plot([0, 1], [0, 1], label="a")
    axes[0, 0].legend(loc="upper left")
    figure.draw_without_rendering()
    before = axes[0, 0].get_legend().get_window_extent().bounds
    settle(figure)
    assert np.allclose(axes[0, 0].get_legend().get_window_extent().bounds, before, atol=1)


def test_labels_of_ticks_do_not_overlap() -> None:
    figure, axes = panels(1, 1)
    ticks = [*range(20), 19.5]
    axes[0, 0].plot(ticks, [1000 + tick for tick in ticks])
    axes[0, 0].set_xticks(ticks, [f"value {tick}" for tick in ticks])
    axes[0, 0].set_yticks([1000 + t for t in ticks])
    settle(figure)
    figure.draw_without_rendering()
    for along, labels in enumerate((axes[0, 0].get_xticklabels(), axes[0, 0].get_yticklabels())):
        shown = [label for label in labels if label.get_text()]
        starts = np.array([label.get_tightbbox().min[along] for label in shown])
        assert len(shown) > 3 and (along == 0 or (np.diff(np.sort(starts)) > 8).all())


class Three(Drawing):
    caption = "Three panels."

    def layout_of(self, records: object) -> Layout:
        return Layout(["one", "two", "three"], (2.0, 1.5))

    def items(self, records: object) -> list[Curve | Level]:
        x_T = np.arange(4.0)
        return [Curve(panel, "curve", BLUE, x_T, np.ones((2, 1)) * x_T) for panel in ("one", "two", "three")]

    def decorate(self, panels: object, records: object) -> None:
        for axes in dict(panels).values():  # type: ignore[call-overload]
            axes.set(title="a title of a panel that is longer than it is wide", xlabel="x")

    def claims(self, records: object) -> list[object]:
        return []


def test_panels_go_into_further_rows_of_a_narrow_figure() -> None:
    wide = Three().draw({})
    with drawn_as(Look(width=3.3)):
        narrow = Three().draw({})
    assert wide.get_figwidth() == 6.0 and narrow.get_figwidth() == 3.3
    for figure, rows in ((wide, 1), (narrow, 2)):
        figure.draw_without_rendering()
        assert len({round(axes.get_position().y0, 3) for axes in figure.axes}) == rows
        assert all(axes.title.get_window_extent().x1 <= figure.bbox.x1 for axes in figure.axes)
    assert wide.axes[0].title.get_fontsize() == narrow.axes[0].title.get_fontsize() == 8


def test_the_sizes_of_a_style_are_followed(tmp_path: Path) -> None:
    path = tmp_path / "my.mplstyle"
    path.write_text(STYLE)
    look = Look.of({"style": str(path), "width": None, "formats": "pdf"})
    assert look.formats == ("pdf",) and look.name == "my" and not look.is_default
    with drawn_as(look):
        figure = Three().draw({})
    axes = figure.axes[0]
    assert axes.title.get_fontsize() == 10 and axes.title.get_fontfamily() == ["serif"]
    assert axes.xaxis.get_majorticklabels()[0].get_fontsize() == 8.75
    before = look.identity
    path.write_text(STYLE.replace("10", "11"))
    assert look.identity != before


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"style": "gplot"}, "figure.style=gplot: must be a file or one of matplotlib's styles; did you"),
        ({"style": 3}, "figure.style=3: must be a name or a list of names"),
        ({"width": 0.2}, "figure.width=0.2: must be a finite number of at least 1"),
        ({"width": 400}, "figure.width=400: must be 40 inches at most"),
        ({"formats": ["pdf", "jpg"]}, "figure.formats=jpg: must be one of png, pdf, svg"),
    ],
)  # fmt: skip
def test_a_look_that_cannot_be_is_refused(given: dict[str, object], said: str) -> None:
    with pytest.raises(InputError) as refused:
        Look.of(given)
    assert str(refused.value).startswith(said)
