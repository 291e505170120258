"""Tests of looped's figures on records computed small, and on records that contradict their claims."""

import numpy as np
import pytest

from icl.errors import InputError
from icl.experiments.looped.loops import Loops
from icl.experiments.looped.phase_diagram import PhaseDiagram
from icl.figures.looped.fig1 import Fig1
from icl.figures.looped.fig2 import Fig2
from icl.figures.looped.fig3 import Fig3
from icl.figures.looped.fig4 import Fig4
from icl.theory.looped.equal_steps import EqualSteps
from tests.records import record


@pytest.fixture(scope="module")
def loops():
    return Loops([20], [1, 2, 3], 6, [1.0, 0.25])._exact()


@pytest.fixture(scope="module")
def gains():
    return PhaseDiagram([2, 3], [14, 50], [1, 2, 3], 20_000, 0)._gains()


def verdicts(figure, **arrays):
    records = {name: record(weights=weights, run={"seeds": [0]}) for name, weights in arrays.items()}
    figure.draw(records)
    assert figure.table(records)
    return [claim.verdict for claim in figure.claims(records)]


def test_figure_1_holds_and_sees_what_is_wrong(loops):
    assert verdicts(Fig1(), exact=loops) == ["holds"] * 3
    no_gain = loops | {"best_NL": loops["scalar_NL"], "best_rational_NL": loops["scalar_NL"]}
    assert verdicts(Fig1(), exact=no_gain) == ["fails", "holds", "holds"]
    below = loops | {"separate_NL": loops["best_NL"] * 1.01}
    assert verdicts(Fig1(), exact=below) == ["holds", "fails", "holds"]
    other = loops | {"best_rational_NL": loops["best_NL"] * 1.001}
    assert verdicts(Fig1(), exact=other) == ["holds", "holds", "fails"]


def test_plain_gradient_descent_is_worse_and_equal_where_sigma_is_a_multiple_of_the_identity(loops):
    """Compare with the best multiple, which plain descent is at Sigma = 2 I."""
    assert (loops["plain_NL"] > loops["scalar_NL"]).all()
    same = Loops([20], [3], 3, [2.0, 2.0])._exact()
    assert same["plain_NL"] == pytest.approx(same["scalar_NL"], rel=1e-7)
    assert loops["separate_NL"][0, 2] == pytest.approx(float(EqualSteps(2, 20, 3).separate_risk))


def test_figure_2_holds_and_sees_what_is_wrong(gains):
    assert verdicts(Fig2(), gains=gains) == ["holds"] * 4
    assert gains["gain_CNL"][0, 0].tolist() == pytest.approx([0, 0, 0.00492], abs=1e-5)
    nothing = gains | {"gain_CNL": 0 * gains["gain_CNL"]}
    assert verdicts(Fig2(), gains=nothing) == ["fails", "undecided", "fails", "fails"]
    off = gains | {"other_CNL": gains["other_CNL"] + 0.5}
    assert verdicts(Fig2(), gains=off)[2] == "fails"


def test_figure_3_holds_and_sees_what_is_wrong():
    steps = np.array([0.0, 1.0])
    arrays = {
        "scalar_a": np.array(0.75), "scalar_risk": np.array(0.0148), "best_a": np.array(0.78),
        "best_b": np.array(0.33), "best_risk": np.array(0.011), "real_RD": np.full((1, 2), 0.78),
        "imag_RD": np.array([[0.33, -0.33]]), "trained_risk_R": np.array([0.0111]),
        "random_risk_T": np.array([2.0, 0.01101]), "scalar_risk_T": np.array([2.0, 0.0148]),
    }  # fmt: skip
    columns = ("spectrum_real", "spectrum_imag", "loss", "exact_risk")
    metrics = {"step": [0, 1], "seed": [0, 0], **{name: [2.0, 0.5] for name in columns}}

    def of(**changed):
        records = {
            "run": record(metrics=metrics, run={"seeds": [0]}),
            "exact": record(weights=arrays | changed),
        }
        Fig3().draw(records)
        return [claim.verdict for claim in Fig3().claims(records)]

    assert of() == ["holds"] * 3 and len(steps) == 2
    assert of(trained_risk_R=np.array([0.015])) == ["fails", "holds", "holds"]
    assert of(imag_RD=np.zeros((1, 2))) == ["holds", "fails", "holds"]
    assert of(scalar_risk_T=np.array([2.0, 0.011])) == ["holds", "holds", "fails"]


def test_figure_4_holds_and_sees_what_is_wrong(loops):
    assert verdicts(Fig4(), exact=loops) == ["holds"] * 2
    worse = loops | {"best_again_NLM": 2 * loops["scalar_again_NLM"]}
    assert verdicts(Fig4(), exact=worse)[0] == "fails"
    falling = loops["best_again_NLM"].copy()
    falling[:] = np.linspace(1, 0.1, falling.shape[-1]) * loops["scalar_again_NLM"][..., -1:].min()
    assert verdicts(Fig4(), exact=loops | {"best_again_NLM": falling})[1] == "fails"


def test_sizes_that_make_no_figure_are_refused():
    for make, words in (
        (lambda: Loops([20, 20], [1], 3, [1.0, 1.0]), "contexts"),
        (lambda: Loops([20], [], 3, [1.0, 1.0]), "loops"),
        (lambda: Loops([20], [1, 4], 3, [1.0, 1.0]), "at_test=3"),
        (lambda: PhaseDiagram([1], [20], [2], 20_000, 0), "dims=1"),
        (lambda: PhaseDiagram([2], [20], [2], 5, 0), "draws=5"),
    ):
        with pytest.raises(InputError, match=words):
            make()
