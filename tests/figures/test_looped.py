"""Figures of looped on records computed small, and on records that contradict their claims."""

import numpy as np
import pytest
from flint import arb

from icl.errors import InputError
from icl.figures.looped.fig1 import Fig1
from icl.figures.looped.fig2 import Fig2, descend, matrix
from icl.figures.looped.fig3 import Fig3
from icl.figures.looped.fig4 import Fig4
from icl.theory.looped.equal_steps import EqualSteps
from icl.theory.looped.weighted import plane_risk
from tests.figures.drawn import covered
from tests.records import FakeRunner, record

LOOPS = {"contexts": [20], "loops": [1, 2, 3], "at_test": 6, "eigenvalues": [1.0, 0.25]}
GAINS = {"dims": [2, 3], "contexts": [14, 50], "loops": [1, 2, 3], "draws": 20_000, "seed": 0}


def trained():
    """Return records of a training that ended at the best matrix."""
    metrics = {
        "step": [0, 1], "seed": [0, 0], "loss": [2.0, 0.02], "exact_risk": [2.0, 0.0111],
        "spectrum_real": [0.01, 0.78], "spectrum_imag": [0.0, 0.33],
    }  # fmt: skip
    arrays = {
        "scalar_a": 0.75, "scalar_risk": 0.0148, "best_a": 0.78, "best_b": 0.33, "best_risk": 0.011,
        "real_RD": [[0.78, 0.78]], "imag_RD": [[0.33, -0.33]], "trained_risk_R": [0.0111],
        "random_risk_T": [2.0, 0.01101], "scalar_risk_T": [2.0, 0.0148],
    }  # fmt: skip
    weights = {name: np.array(values) for name, values in arrays.items()}
    return {"run": record(metrics=metrics, run={"seeds": [0]}), "exact": record(weights=weights)}


@pytest.fixture(scope="module")
def drawn():
    """Return each figure and its records."""
    loops, gains = Fig1(**LOOPS), Fig2(**GAINS)
    exact = loops.runs(FakeRunner())
    return {
        Fig1: (loops, exact),
        Fig2: (gains, gains.runs(FakeRunner())),
        Fig3: (Fig3(1), trained()),
        Fig4: (Fig4(**LOOPS), exact),
    }


CONTRADICTIONS = {  # figure, record: arrays that change, and what the claims at these places become
    "no gain": (Fig1, "exact", lambda a: {"best_NL": a["scalar_NL"]}, {0: "fails"}),
    "layers that cost": (Fig1, "exact", lambda a: {"separate_NL": 1.01 * a["best_NL"]}, {1: "fails"}),
    "no cell gains": (
        Fig2, "gains", lambda a: {"gain_CNL": 0 * a["gain_CNL"]}, {0: "fails", 1: "undecided", 2: "fails"}),
    "above the saddle": (Fig3, "exact", lambda a: {"trained_risk_R": np.array([0.015])}, {0: "fails"}),
    "no rotation": (Fig3, "exact", lambda a: {"imag_RD": np.zeros((1, 2))}, {1: "fails"}),
    "a way off the multiples": (
        Fig3, "exact", lambda a: {"scalar_risk_T": np.array([2.0, 0.011])}, {2: "fails"}),
    "a scalar that lasts": (
        Fig4, "exact", lambda a: {"best_again_NLM": 2 * a["scalar_again_NLM"]}, {0: "fails"}),
    "loops that help": (
        Fig4, "exact", lambda a: {"best_again_NLM": -np.sort(-a["best_again_NLM"])}, {1: "fails"}),
}  # fmt: skip


@pytest.mark.parametrize("cls", [Fig1, Fig2, Fig3, Fig4])
def test_every_claim_holds_and_the_figure_is_drawn(drawn, cls):
    figure, records = drawn[cls]
    assert {claim.verdict for claim in figure.claims(records)} == {"holds"}
    assert not covered(figure.picture(records))


@pytest.mark.parametrize(("cls", "name", "change", "verdicts"), CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_a_claim_sees_what_contradicts_it(drawn, cls, name, change, verdicts):
    figure, records = drawn[cls]
    arrays = records[name].weights
    claims = figure.claims({**records, name: record(weights={**arrays, **change(arrays)})})
    assert {place: claims[place].verdict for place in verdicts} == verdicts


def test_risks_at_two_covariates_are_those_of_the_quadrature_rule(drawn):
    """Compare rational risks with Gauss nodes; plain descent at Sigma = 2 I with
    the best multiple."""
    arrays = drawn[Fig1][1]["exact"].weights
    again_M = arrays["scalar_again_NLM"][0, 2]
    steps = EqualSteps(2, 20, 3)
    expected = [plane_risk(20, M).value(steps.best * np.eye(2)) for M in range(1, 7)]
    assert again_M == pytest.approx(expected, rel=1e-9)
    assert arrays["best_again_NLM"][0, 2, 2] == pytest.approx(arrays["best_NL"][0, 2], rel=1e-9)
    assert arrays["separate_NL"][0, 2] == pytest.approx(float(arb(steps.separate_risk)))
    assert (arrays["plain_NL"] > arrays["scalar_NL"]).all()
    same = Fig1([20], [3], 3, [2.0, 2.0]).runs(FakeRunner())["exact"].weights
    assert same["plain_NL"] == pytest.approx(same["scalar_NL"], rel=1e-7)


def test_gains_are_those_of_a_descent_on_the_quadrature_rule(drawn):
    gain_NL = drawn[Fig2][1]["gains"].weights["gain_CNL"][0]
    assert gain_NL[0].tolist() == pytest.approx([0, 0, 0.00492], abs=1e-5)
    steps, rule = EqualSteps(2, 50, 3), plane_risk(50, 3)
    risk = rule.value(matrix(descend(rule, steps.best), 2))
    assert gain_NL[1, 2] == pytest.approx(1 - risk / steps.least_risk, rel=1e-5)


@pytest.mark.parametrize(
    ("cls", "settings", "words"),
    [
        (Fig1, LOOPS | {"contexts": [20, 20]}, "contexts"),
        (Fig1, LOOPS | {"loops": []}, "loops"),
        (Fig4, LOOPS | {"at_test": 2}, "at_test=2"),
        (Fig2, GAINS | {"dims": [1]}, "dims"),
        (Fig2, GAINS | {"draws": 5}, "draws=5"),
    ],
)
def test_settings_that_make_no_figure_are_refused(cls, settings, words):
    with pytest.raises(InputError, match=words):
        cls(**settings)
