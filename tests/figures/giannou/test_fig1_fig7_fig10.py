"""Tests of claims on losses where they hold, where they do not, and where training was too short."""

import numpy as np
import pytest

from icl.experiments.giannou.fig10 import Fig10 as Surfaces
from icl.figures.giannou.fig1 import Fig1
from icl.figures.giannou.fig7 import Fig7
from icl.figures.giannou.fig10 import Fig10
from icl.figures.giannou.losses import interval
from tests.records import FakeRunner, record

LEAST, NEWTON = 0.63, np.array([6e-2, 8e-3, 3e-4, 7e-7])  # excess of Newton's steps
SPREAD = np.array([0.98, 1.0, 1.02])  # of three seeds


def records(excess, decisive=False, error=None):
    """Return records of encoders of these depths so far above the minimum."""
    trained_LR = np.outer(list(excess.values()), SPREAD)
    newton_TR = np.outer(NEWTON, SPREAD)
    losses = {
        "layers_L": np.array(list(excess)), "inversion_steps": np.array(5), "decisive": np.array(decisive),
        "least_R": np.full(3, LEAST), "variance_R": np.full(3, 0.2),
        "newton_TR": LEAST + newton_TR, "newton_excess_TR": newton_TR,
        "trained_LR": LEAST + trained_LR, "trained_excess_LR": trained_LR,
        "gap_LTR": trained_LR[:, None] - newton_TR,
        "gap_stderr_LTR": np.full((len(excess), len(NEWTON), 3), 1e-6),
        "error_LR": trained_LR * 3 if error is None else np.outer(error, SPREAD),
    }  # fmt: skip
    metrics = {"step": [0, 10] * 3, "seed": [0, 0, 1, 1, 2, 2], "loss": [0.2, 0.01] * 3}
    runs = {f"L={layers}": record(run={"seeds": [0, 1, 2]}, metrics=metrics) for layers in excess}
    return {**runs, "losses": record(weights=losses)}


def verdicts(given):
    return [claim.verdict for claim in Fig7().claims(given)]


def test_where_all_is_as_claimed():
    given = records({1: 8e-4, 2: 1e-4})
    assert verdicts(given) == ["holds"] * 4
    scaled, *others = Fig7().claims(given)
    assert scaled.whose == "paper" and {claim.whose for claim in others} == {"project"}
    assert [claim.measured["mean"] for claim in others[:2]] == pytest.approx([8e-4 - 8e-3, 1e-4 - 3e-4])
    # at one layer of thirteen the line is 12/13 of Newton's start and 1/13 of his first step
    line = (12 * NEWTON[0] + NEWTON[1]) / 13
    assert scaled.measured["1 layers, 13 a step"]["mean"] == pytest.approx(8e-4 - line, rel=1e-9)
    assert set(scaled.measured) == {f"{depth} layers, {step} a step" for depth in (1, 2) for step in (13, 21)}
    assert any("start x = 0" in remark for remark in scaled.remarks)
    assert Fig1().claims(given)[0] == scaled


@pytest.mark.parametrize("decisive", [False, True])
def test_only_the_papers_own_training_refutes(decisive):
    """Refute with two layers above two steps; deeper is worse; a loss above Newton's start."""
    refuted = "fails" if decisive else "undecided"
    assert verdicts(records({1: 8e-4, 2: 6e-4}, decisive)) == ["holds", "holds", refuted, "holds"]
    worse = records({1: 8e-4, 2: 9e-4}, decisive, error=[1e-3, 2e-3])
    assert verdicts(worse) == ["holds", "holds", refuted, refuted]
    assert verdicts(records({1: 7e-2, 2: 7e-2}, decisive, error=[1e-2, 1e-3]))[0] == refuted


def test_deep_encoders_are_compared_with_the_steps_they_equal():
    """Decide on few layers: more are as good as their training, and Newton as the minimum."""
    given = records({1: 8e-4, 14: 5e-2, 39: 1e-5}, decisive=True)
    scaled, as_many = Fig7().claims(given)
    assert scaled.measured["14 layers, 13 a step"]["low"] > 0
    assert as_many.claim.startswith("a trained encoder of one layer")
    assert scaled.verdict == "holds" and "39 layers, 13 a step" not in scaled.measured  # he has arrived
    assert len(Fig7().claims(records({8: 1e-4}))) == 1  # nothing to compare depths with, or as many steps
    assert Fig1().claims(records({20: 1e-4})) == []


def test_intervals_are_students():
    mean, half = interval(np.array([1.0, 2.0, 3.0]))
    assert mean == 2 and half == pytest.approx(4.302653 / 3**0.5, rel=1e-6)
    assert np.isnan(interval(np.array([1.0]))[1])


def test_what_is_drawn_is_in_the_table():
    given = records({1: 8e-4, 2: 1e-4})
    rows = Fig7().table(given)
    at = {(row["panel"], row["series"], row.get("x")): row["y"] for row in rows}
    assert at["a", "Newton, 13 layers a step", 26] == pytest.approx(LEAST + NEWTON[2])
    assert at["a", "Newton, 21 (11 + 2k)", 21] == pytest.approx(LEAST + NEWTON[1])
    assert at["b", "trained encoder", 2] == pytest.approx(1e-4)
    assert at["c", "2 layers", 10] == pytest.approx(0.01)
    assert list(Fig1().table(given)) == [row | {"panel": "loss"} for row in rows if row["panel"] == "a"]
    assert Fig7().draw(given) and Fig1().draw(given)


def test_figure_10_says_what_holds_of_the_surfaces():
    given = Surfaces(10, 200).records(FakeRunner())
    claims = Fig10().claims(given)
    assert [claim.verdict for claim in claims] == ["holds", "fails", "fails", "holds"]
    assert all(claim.verdict == claim.expected for claim in claims)
    given["surfaces"].weights.update(certificate=np.array(-1.0), largest_h=np.array(-0.02))
    assert [claim.verdict for claim in Fig10().claims(given)] == ["fails", "fails", "holds", "holds"]
    assert len(Fig10().table(given)) == 2 * 11 * 11 and Fig10().draw(given)
