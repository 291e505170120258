"""Every figure: which runs it asks for, its claims measured again, its picture at both widths. The limits of
its settings are in tests/conformance."""

import json
from pathlib import Path

import numpy as np
import pytest
from matplotlib.text import Text

from icl.figures.look import Look, drawn_as
from tests.conformance.configs import configs
from tests.drawn import content, faults, widths
from tests.figures.bases import STORED, base, built, rounded, stored
from tests.records import FakeRunner, mark, record

FIGURES = [config.name for config in configs("figure")]
DRAWN_ALONE = ("ahn/fig6", "ahn/fig7", "giannou/fig2")  # of which no arrays of the claims are stored
LAID_OUT_AS_ANOTHER = ("lds/fig2", "lds/fig4", "lds/fig6", "giannou/fig4", "giannou/fig6")  # but for numbers
DRAWN = Path(__file__).with_name("drawn.jsonl")  # what each draws; this file as a program renews it
# Runs in requests.txt: a figure, the scale and other settings; below them each experiment and what is set.
REQUESTS = Path(__file__).with_name("requests.txt").read_text().strip().split("\n\n")
COLUMN = 3.3  # inches
OF_A_USER = "lines.linewidth: 0.5\npatch.linewidth: 0.5\nfont.size: 6\n"


@pytest.mark.parametrize("id", [id for id in STORED if id not in DRAWN_ALONE])
def test_claims_are_those_stored_number_by_number(id):
    request, records, claims = stored(id)
    found = request.claims(records)
    assert [rounded(claim) for claim in found] == [rounded(claim) for claim in claims]


@pytest.mark.parametrize("id", FIGURES)
def test_a_picture_is_legible_at_both_widths_and_in_a_users_lines(id, tmp_path):
    figure, records = base(id)
    if id not in LAID_OUT_AS_ANOTHER:
        assert not faults(figure.picture(records))
    path = tmp_path / "my.mplstyle"
    path.write_text(OF_A_USER)
    with drawn_as(Look((str(path),), COLUMN)):
        narrow = figure.picture(records)
    assert narrow.get_figwidth() == COLUMN and not faults(narrow)
    assert widths(narrow) <= {0.5}
    known = dict(map(json.loads, DRAWN.read_text("utf-8").splitlines()))[id]
    for found, panel in zip(content(narrow), known, strict=True):
        assert found == [panel[0], *(pytest.approx(number, rel=1e-6) for number in panel[1:])]
    assert max(text.get_fontsize() for text in narrow.findobj(Text) if text.get_text()) == 6


def test_what_the_battery_would_object_to_is_seen(monkeypatch):
    figure, records = base("xie/fig1")
    monkeypatch.setattr(figure, "remark", "trained with fewer steps")
    picture = figure.picture(records)
    assert picture.get_suptitle() == figure.remark
    axes = picture.axes[0]
    axes.plot(axes.get_xlim(), np.array(axes.get_ylim()), label="LSA, trained")
    axes.plot(
        [0], [0], color="#D55E00", marker="o", markerfacecolor="none", linestyle="none", label="another"
    )
    axes.legend(loc="upper right")
    axes.set_title("a title " * 40)
    found = {one.partition(":")[0] for one in faults(picture)}
    assert found >= {"covered", "alike", "leaves the picture"}


@pytest.mark.parametrize("block", REQUESTS, ids=lambda block: block.partition("\n")[0])
def test_a_figure_asks_for_these_runs(block):
    title, *lines = block.split("\n")
    id, scale, *settings = title.split(" ", 2)
    figure = built(id, scale, **json.loads("".join(settings) or "{}"))
    run = record(run=mark("f", [4, 7]), config={"task": {"context": 9}})
    runner = FakeRunner(lambda *asked: run, scale)
    runner.store = lambda *given: record(run=mark("s"), weights=_best_points(figure))
    figure.runs(runner)
    assert [_line(*asked) for asked in runner.asked] == lines


def _best_points(figure):
    """Return where the stacks of giannou's Figure 2 begin."""
    layers = getattr(figure, "layers", None) or [1]
    theta_LV = np.full((len(layers), 2 * max(layers)), 0.8) if isinstance(layers, list) else None
    return {f"family_{mask}_theta_LV": theta_LV for mask in ("masked", "unmasked")}


def _line(experiment, overrides):
    return " ".join(
        [experiment, *(f"{key}={json.dumps(value)}" for key, value in rounded(overrides).items())]
    )


if __name__ == "__main__":
    shown = {id: content(figure.picture(records)) for id in FIGURES for figure, records in [base(id)]}
    DRAWN.write_text("".join(f"{json.dumps(one, ensure_ascii=False)}\n" for one in shown.items()), "utf-8")
