"""Tests of the parts of figures: claims, the helpers of a panel, layout and look, stored arrays."""

import json
from pathlib import Path

import numpy as np
import pytest

from icl.errors import InputError
from icl.figures import arrays, style
from icl.figures.claims import Claim
from icl.figures.figure import Figure, Layout
from icl.figures.look import Look, drawn_as
from icl.figures.style import BLUE
from icl.runs.record import RunRecord


def claim(verdict, **more):
    return Claim("c", 1.0, "b", verdict, kind="exact", **more)


@pytest.mark.parametrize(
    "wrong", [{"verdict": "perhaps"}, {"expected": "true"}, {"kind": ""}, {"kind": "felt"}, {"whose": "mine"}]
)
def test_a_claim_is_one_of_three_verdicts_and_says_what_decides_it(wrong):
    with pytest.raises(InputError):
        Claim("c", 1.0, "b", **{"verdict": "holds", "kind": "exact"} | wrong)


@pytest.mark.parametrize(
    ("scale", "other", "made", "wanted"),
    [
        ("laptop", {}, claim("fails"), ("fails", "holds", False)),
        ("laptop", {"steps": 9}, claim("fails"), ("undecided", "undecided", True)),
        ("laptop", {"steps": 9}, claim("holds"), ("holds", "holds", False)),
        ("laptop", {"steps": 9}, claim("fails", trained=False), ("fails", "holds", False)),
        ("laptop", {}, Claim.undecided("c", "no exact risk"), ("undecided", "undecided", True)),
        ("laptop", {}, claim("holds", expected="fails", at_paper="holds"), ("holds", "fails", False)),
        ("paper", {}, claim("holds", expected="fails", at_paper="holds"), ("holds", "holds", False)),
        ("paper", {}, claim("holds", expected="fails"), ("holds", "fails", False)),
        ("smoke", {}, claim("holds"), ("undecided", "undecided", True)),
        ("smoke", {}, claim("holds", trained=False), ("holds", "holds", False)),
    ],
)
def test_what_is_expected_of_a_claim_depends_on_the_training(scale, other, made, wanted):
    found = made.document(scale, other, "")
    assert (found["verdict"], found["expected"], "reason" in found) == wanted


def test_what_helpers_draw_is_what_they_are_given():
    _, panels = Layout("abc").create()
    y_ST = np.array([[1.0, 2.0], [3.0, 6.0]])
    style.band(panels["a"], [0, 1], y_ST, BLUE, "mean")
    style.quantiles(panels["b"], [0, 1], np.array([[1.0, 2.0, 9.0], [3.0, 4.0, 9.0]]), BLUE, "median")
    style.points(panels["c"], [5, 7], y_ST, BLUE, "seeds")
    drawn = [axes.lines[0].get_xydata().tolist() for axes in panels.values()]
    assert drawn == [[[0, 2], [1, 4]], [[0, 2], [1, 4]], [[5, 1], [5, 2], [7, 3], [7, 6]]]
    low_high = [panels[name].collections[0].get_paths()[0].get_extents().intervaly for name in "ab"]
    assert np.array_equal(low_high, [[1, 6], [1, 9]])


def test_axes_over_little_have_plain_numbers_and_steps_begin_at_0():
    figure, panels = Layout().create()
    axes = panels[""]
    axes.plot([0, 1000], [0.13, 5])
    style.log_axis(axes)
    style.step_axis(axes, 1000)
    figure.draw_without_rendering()
    assert {"0.2", "0.5", "1"} <= {label.get_text() for label in axes.get_yticklabels()}
    at = axes.transData.transform([(0, 1), (1, 1), (10, 1), (1000, 1)])
    x_N = axes.transAxes.inverted().transform(at)[:, 0]
    assert x_N[0] == 0 and x_N[-1] == 1 and 0 < x_N[1] < x_N[2] < 0.6


@pytest.mark.parametrize(
    ("entry", "text"),
    [(10.05, "10.1"), (-12.6, "−12.6"), (1.234, "1.23"), (0.5, ".50"), (-0.07, "−.07"), (0.004, "0")],
)
def test_entries_are_short_and_right(entry, text):
    assert style.entry_text(entry) == text


class Drawn(Figure):
    def __init__(self, layout):
        self.layout = layout

    runs = claims = None

    def draw(self, panels, records):
        for axes in panels.values():
            style.band(axes, np.arange(4.0), np.ones((2, 4)), BLUE, "a curve with a long name")
            style.points(axes, np.arange(4.0), np.ones((4, 1)), BLUE, "points with a long name")
            style.exact_line(axes, 1.0, "an exact value with a long name")
            axes.set(title="a title", xlabel="x")
        style.shared_legend(panels.values())


LAYOUTS = {  # layout; panels in each row and height without the legend, as shipped and 3.4 inches wide
    "equal": (Layout("abc", (2.0, 1.5)), ([3], 1.5), ([2, 1], 2 * 1.5 * 1.7 / 2)),
    "a row for each model": (Layout("abcd", (2.0, 1.5), 2), ([2, 2], 3.0), ([2, 2], 2 * 1.5 * 1.7 / 2)),
    "of widths": (Layout("abcdef", (0, 1.5), widths=(3.0, 1.5, 1.5)), ([3, 3], 3.0), ([1, 2, 1, 2], 6.0)),
}


@pytest.mark.parametrize(("layout", "wide", "narrow"), LAYOUTS.values(), ids=LAYOUTS)
def test_panels_and_legend_go_into_further_rows_of_a_narrow_figure(layout, wide, narrow):
    for width, (rows, height) in ((None, wide), (3.4 if layout.size[0] else 4.0, narrow)):
        with drawn_as(Look(width=width)):
            figure = Drawn(layout).picture({})
        figure.draw_without_rendering()
        y_of = [round(axes.get_position().y1, 2) for axes in figure.axes]
        assert [y_of.count(y) for y in dict.fromkeys(y_of)] == rows and y_of == sorted(y_of)[::-1]
        (legend,) = figure.legends
        box = legend.get_window_extent()
        assert len(legend.get_texts()) == 3 and box.x0 >= 0 and box.x1 <= figure.bbox.x1
        assert figure.get_figheight() == pytest.approx(height + box.height / figure.dpi)
        assert not any(box.overlaps(axes.get_tightbbox()) for axes in figure.axes)


def stored_run():
    made = RunRecord(Path("runs/a/b/0"), {"experiment": "a/b", "fingerprint": "0" * 12, "seeds": [3, 4]})
    weights = {"first": np.arange(6.0).reshape(2, 3), "unread": np.zeros(9), "last": np.ones((2, 1))}
    metrics = {"step": [0, 0, 1, 1], "seed": [3, 4, 3, 4], "loss": [1.0, None, 0.5, 0.1], "other": [0.0] * 4}
    config = {"task": {"dim": 5}, "paths": {"outputs": "/somewhere"}}
    vars(made).update(weights=weights, metrics=metrics, config=config)
    return made


def test_what_was_read_comes_back_in_its_order_and_nothing_else(tmp_path):
    seen, given = arrays.noted({"run": stored_run()}), stored_run()
    seen["run"].curve("loss"), seen["run"].weights["last"], seen["run"].weights["first"]
    (tmp_path / "arrays.npz").write_bytes(arrays.pack(seen))
    sources = json.loads(json.dumps([arrays.source("run", seen["run"])]))
    run = arrays.unpack(sources, tmp_path / "arrays.npz")["run"]
    assert list(run.weights) == ["first", "last"]
    assert np.array_equal(run.weights["first"], given.weights["first"])
    assert run.config == {"task": {"dim": 5}} and run.run["seeds"] == [3, 4]
    assert {**run.metrics} == {key: given.metrics[key] for key in ("step", "seed", "loss")}
