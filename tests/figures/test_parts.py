"""Tests of the parts of figures: claims, curves with their table, and panels as SVG."""

import ast
import pydoc
import re
from pathlib import Path

import numpy as np
import pytest

import icl.figures
from icl.errors import InputError
from icl.figures.claims import Claim
from icl.figures.drawing import Drawing
from icl.figures.items import Curve, Level, Points, draw_items, metric, plain, table
from icl.figures.style import entry_text, heatmap, log_axis, off_identity, panels
from icl.figures.vector import svg
from icl.jobs.requests.figure import _claim_document
from icl.verdicts import KINDS, joint
from tests.records import record


def test_a_part_that_fails_decides():
    assert joint(["holds", "undecided", "fails"]) == "fails"
    assert joint(["holds", "undecided"]) == "undecided"
    assert joint(["holds"]) == "holds"


def test_every_claim_says_what_kind_of_number_decides_it():
    """Take the kind from the numbers compared; it is given where no comparison yields the verdict."""
    calls = [
        ({keyword.arg: keyword.value for keyword in node.keywords}, node.func)
        for path in sorted(Path(icl.figures.__file__).parent.rglob("*/*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("Claim", "Claim.of")
    ]
    direct = [keywords for keywords, func in calls if ast.unparse(func) == "Claim"]
    assert len(calls) > 60 and len(direct) < len(calls) / 2
    assert all(getattr(keywords["kind"], "value", "") in KINDS for keywords in direct)
    assert not [
        keywords for keywords, func in calls if ast.unparse(func) == "Claim.of" and "kind" in keywords
    ]


def test_a_verdict_has_three_values():
    with pytest.raises(InputError):
        Claim("c", 1.0, "b", "perhaps")
    with pytest.raises(InputError):
        Claim("c", 1.0, "b", "holds", expected="true")


@pytest.mark.parametrize(
    ("scale", "other", "trained", "verdict", "wanted"),
    [
        ("laptop", {}, True, "fails", ("fails", "holds", False)),
        ("laptop", {"steps": 9}, True, "fails", ("undecided", "undecided", True)),
        ("laptop", {"steps": 9}, True, "holds", ("holds", "holds", False)),
        ("laptop", {"steps": 9}, False, "fails", ("fails", "holds", False)),
        ("smoke", {}, True, "holds", ("undecided", "undecided", True)),
        ("smoke", {}, False, "holds", ("holds", "holds", False)),
    ],
)
def test_a_claim_about_other_training_is_confirmed_or_undecided(scale, other, trained, verdict, wanted):
    claim = Claim("c", 1.0, "b", verdict, trained=trained)
    found = _claim_document(claim, scale, other)
    assert (found["verdict"], found["expected"], "reason" in found) == wanted
    impossible = _claim_document(Claim.undecided("c", "no exact risk"), "laptop", {})
    assert (impossible["verdict"], impossible["reason"]) == ("undecided", "no exact risk")


def test_another_verdict_may_be_expected_at_the_papers_scale():
    claim = Claim("c", 1.0, "b", "holds", expected="fails", at_paper="holds")
    assert [_claim_document(claim, scale, {})["expected"] for scale in ("laptop", "paper")] == [
        "fails",
        "holds",
    ]
    assert _claim_document(Claim("c", 1.0, "b", "fails"), "paper", {})["expected"] == "holds"


def test_the_table_has_what_is_drawn():
    curve = Curve("a", "blue", "#0072B2", np.array([0, 5]), np.array([[1.0, 4.0], [3.0, 0.0]]))
    level = Level("a", "exact", 0.25)
    _, axes = panels(1, 1)
    draw_items({"a": axes[0, 0]}, [curve, level])
    rows = table([curve, level])
    assert rows[0] == {"panel": "a", "series": "blue", "x": 0, "y": 2.0, "low": 1.0, "high": 3.0}
    assert [row["y"] for row in rows] == [2.0, 2.0, 0.25]
    lines = {line.get_label(): line.get_ydata() for line in axes[0, 0].lines}
    assert np.array_equal(lines["blue"], [2.0, 2.0])
    assert set(lines["exact"]) == {0.25}


def test_the_data_have_every_seed_and_plain_names():
    x_T, y_ST = np.array([0, 5]), np.array([[1.0, 4.0], [3.0, 0.0]])
    curve = Curve("a", r"$\Sigma^{1/2}A_\ell\Sigma^{1/2}$", "#0072B2", x_T, y_ST)
    points = Points("b", "trained", "#0072B2", x_T, y_ST.T)
    of = {"panel": "a", "curve": "Sigma^1/2 A_l Sigma^1/2"}
    rows = [(7, 0, 1.0), (7, 5, 4.0), (3, 0, 3.0), (3, 5, 0.0)]
    wanted = [of | dict(zip(("seed", "x", "y"), row, strict=True)) for row in rows]
    assert curve.data([7, 3]) == wanted
    assert points.data([7, 3]) == [row | {"panel": "b", "curve": "trained"} for row in wanted]
    assert [row["seed"] for row in curve.data([7])] == [0, 0, 1, 1], "of which no seeds are known"
    assert Level("a", "exact", 0.25).data([7]) == [{"panel": "a", "curve": "exact", "seed": "", "y": 0.25}]
    labels = {r"$\|w^*\|^2$ = 4": "|w^*|^2 = 4", "$W_{QK}$, one gauge": "W_QK, one gauge"}
    labels |= {r"PGD, $\eta_\ell$ per step": "PGD, eta_l per step", r"$\langle w, x\rangle$": "<w, x>"}
    assert {label: plain(label) for label in labels} == labels


def test_every_shipped_figure_is_a_drawing_that_is_drawn_and_saved_in_one_place():
    configs = sorted((Path(icl.figures.__file__).parents[2] / "conf" / "figure").glob("*/*.yaml"))
    targets = [re.findall(r"_target_: (icl\.figures\.[\w.]+)", path.read_text("utf-8")) for path in configs]
    classes = [pydoc.locate(name) for found in targets for name in found]
    assert len(classes) == len(configs) > 25
    assert all(issubclass(figure, Drawing) and "draw" not in vars(figure) for figure in classes)


def test_a_metric_is_read_where_every_seed_has_a_value():
    columns = {"step": [0, 0, 1, 1, 2, 2], "seed": [4, 3] * 3, "loss": [1.0, 2.0, None, 5.0, 3.0, 4.0]}
    run = record(run={"seeds": [3, 4]}, metrics=columns)
    steps_T, loss_ST = metric(run, "loss")
    assert steps_T.tolist() == [0, 2]
    assert loss_ST.tolist() == [[2.0, 4.0], [1.0, 3.0]]


def test_off_identity_is_the_largest_entry_beside_a_multiple_of_the_identity():
    M_DD = np.array([[2.0, 0.3], [-0.5, 2.0]])
    assert np.isclose(off_identity(M_DD), 0.25)
    assert np.isclose(off_identity(-M_DD), 0.25)
    assert off_identity(np.stack([np.eye(3), 5 * np.eye(3)])).tolist() == [0.0, 0.0]


def test_a_log_axis_over_little_has_plain_numbers():
    _, axes = panels(1, 1)
    axes[0, 0].plot([0, 1], [0.13, 5])
    log_axis(axes[0, 0])
    axes[0, 0].figure.canvas.draw()
    labels = {label.get_text() for label in axes[0, 0].get_yticklabels()}
    assert {"0.2", "0.5", "1"} <= labels


def test_entries_are_short_and_right():
    entries = {10.05: "10.1", -12.6: "-12.6", 1.234: "1.23", 0.5: ".50", -0.07: "-.07", 0.004: "0"}
    entries[100.0] = "100.0"
    assert {entry: entry_text(entry) for entry in entries} == entries


def views(text):
    found = re.findall(r'<view id="([\w-]+)" viewBox="([-\d. ]+)"', text)
    return {name: [float(number) for number in box.split()] for name, box in found}


def test_every_panel_has_a_view_with_what_is_drawn_in_it_and_the_file_is_always_the_same():
    def drawn():
        figure, axes = panels(1, 3)
        axes[0, 0].set(title="(a) loss", xlabel="step")
        axes[0, 0].plot([0, 1], [1, 0], color="black")
        heatmap(axes[0, 1], np.eye(2), "weights", 1.0, bar=True)
        axes[0, 2].set(title="(b) risk")
        return svg(figure).decode()

    text, found = drawn(), views(drawn())
    assert list(found) == ["panel-a", "panel-2", "panel-b"]
    groups = re.findall(r'<g id="in-([\w-]+)\.(\d)"', text)
    assert groups == [("panel-a", "1"), ("panel-2", "1"), ("panel-b", "1"), ("panel-2", "2")], "with its bar"
    right = [x + width for x, _, width, _ in found.values()]
    left = [x for x, *_ in found.values()]
    assert all(end <= start + 6 for end, start in zip(right, left[1:], strict=False)), "they lie side by side"
    assert text == drawn() and "#111111" in text and "#ffffff" not in text
    assert views(svg(panels(1, 1)[0]).decode()) == {}, "a single panel needs none"


def test_a_last_bit_of_the_layout_does_not_rename_a_clip_path():
    def clip_paths(nudge):
        figure, axes = panels(1, 1, (2.0, 2.0))
        figure.set_layout_engine(None)
        axes[0, 0].set_position((0.21 + nudge, 0.22, 0.7, 0.7))
        axes[0, 0].plot([0, 1], [0, 1])
        return re.findall(r'<clipPath id="(\w+)">(.*?)</clipPath>', svg(figure).decode(), re.DOTALL)

    assert clip_paths(0) == clip_paths(1e-13) != []
