"""Figures of lu on records computed small, and on records that contradict their claims."""

import numpy as np
import pytest

from icl.errors import InputError
from icl.figures.lu.fig1 import Fig1
from icl.figures.lu.fig2 import Fig2
from icl.figures.lu.fig3 import Fig3
from icl.figures.lu.fig4 import Fig4
from icl.figures.lu.simulated import Setting, limits, simulate
from icl.theory.lu.limits import plotted
from tests.figures.drawn import covered
from tests.records import FakeRunner, record

SIZES = {"dims": [6, 10], "seed": 0}
SETTINGS = {
    Fig1: SIZES | {"alphas": [1.0, 10.0], "taus": [0.3, 0.8, 1.3, 2.0], "ridges": [1e-5, 1.0], "kappa": 0.5,
                   "rho": 0.01, "draws": 20},
    Fig2: SIZES | {"alphas": [1.0, 1000.0], "taus": [0.5, 20.0], "rhos": [0.5, 0.1], "draws": [20, 4],
                   "kappas": [[0.1, 0.5, 2.0], [0.2, 1.5]]},
    Fig3: {"taus": [0.5, 0.5, 20.0], "errors": ["icl", "idg", "icl"], "alpha_most": 1000.0, "grid": 11,
           "alphas": 60},
    Fig4: SIZES | {"alphas": [10.0, 20.0], "kappas": [0.3, 5.0], "dmmse_kappas": [0.3, 6.0], "draws": 6,
                   "tau_by_alpha": 0.2, "rho": 0.01, "prompts": 40},
}  # fmt: skip


@pytest.fixture(scope="module")
def drawn():
    """Return each figure and its records."""
    figures = {cls: cls(**settings) for cls, settings in SETTINGS.items()}
    return {cls: (figure, figure.runs(FakeRunner())) for cls, figure in figures.items()}


def level(arrays):
    return {"new_PC": 1 + 0 * arrays["new_PC"], "new_stderr_PC": 0 * arrays["new_PC"]}


CONTRADICTIONS = {  # figure, record: arrays that change, and what the claims at these places become
    "a limit without a peak": (
        Fig1, "plain", lambda a: {"new_curve_SX": 0 * a["new_curve_SX"]}, {0: "fails"}),
    "prompts that change nothing": (Fig1, "plain", level, {1: "fails", 2: "fails"}),
    "noise": (
        Fig1, "plain", lambda a: {"new_stderr_PC": 1e3 + 0 * a["new_PC"]}, {1: "undecided", 2: "undecided"}),
    "errors that leave the limit": (
        Fig1, "plain", lambda a: {"new_PC": a["new_PC"][:, ::-1]}, {3: "fails"}),
    "a peak with a ridge": (
        Fig1, "ridge", lambda a: {"new_curve_SX": a["new_curve_SX"][[0, 0]]}, {4: "fails"}),
    "another kappa": (
        Fig2, "a", lambda a: {"old_curve_SX": a["old_curve_SX"][[1, 0, 2]]}, {0: "fails"}),
    "examples that help": (
        Fig2, "b", lambda a: {"new_curve_SX": -np.sort(-a["new_curve_SX"])}, {1: "fails"}),
    "examples that change nothing": (Fig2, "b", level, {2: "fails"}),
    "no rise": (Fig3, "exact", lambda a: {"rise_PNK": 0 * a["rise_PNK"]}, {0: "fails", 2: "fails"}),
    "a rise everywhere": (
        Fig3, "exact", lambda a: {"rise_PNK": 1 + a["rise_PNK"]}, {1: "fails", 2: "fails", 3: "fails"}),
    "a gap that stays": (
        Fig4, "attention", lambda a: {"gap_curve_SX": 1 + a["gap_curve_SX"]}, {0: "fails"}),
    "a gap that grows": (Fig4, "attention", lambda a: {"gap_PC": -a["gap_PC"]}, {1: "fails"}),
    "dMMSE without a gap": (Fig4, "dmmse", lambda a: {"gap_AK": 0 * a["gap_AK"]}, {2: "fails"}),
}  # fmt: skip


@pytest.mark.parametrize("cls", SETTINGS)
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


def test_figure_3_is_the_published_one(drawn):
    """Compare at kappa = 1/2, rho = .505 with the alphas that the published notebook's rule finds on its own
    grid of 500: a first local minimum."""
    arrays = drawn[Fig3][1]["exact"].weights
    alphas = np.geomspace(0.01, 1000, 500)
    k, n = (int(np.abs(arrays[name] - x).argmin()) for name, x in (("kappas_K", 0.5), ("rhos_N", 0.5)))
    kappa, rho = arrays["kappas_K"][k], arrays["rhos_N"][n]
    for p, (tau, error) in enumerate([(0.5, "icl"), (0.5, "idg"), (20.0, "icl")]):
        e_A = np.array([plotted(alpha, kappa, tau, rho)[error == "idg"] for alpha in alphas])
        first = 1 + np.flatnonzero((e_A[:-2] > e_A[1:-1]) & (e_A[1:-1] < e_A[2:]))[0]
        assert arrays["alpha_PNK"][p, n, k] == pytest.approx(alphas[first], rel=0.22)  # of either grid


def test_curves_are_limits_of_each_series_and_points_those_of_the_settings():
    settings = [Setting(alpha, 0.5, tau, 0.1, 0.2) for alpha in (1.0, 3.0) for tau in (0.5, 2.0)]
    found = limits(settings, "tau")
    assert found["new_curve_SX"].shape == (2, 151) and found["x_X"][[0, -1]] == pytest.approx([0.5, 2.0])
    assert found["new_curve_SX"][1, -1] == pytest.approx(found["new_limit_P"][3])
    assert found["old_limit_P"][2] == plotted(3.0, 0.5, 0.5, 0.1, 0.2)[1]


def test_means_and_standard_errors_are_those_of_repeated_draws():
    """Compare with the spread over other seeds."""
    setting = [Setting(5.0, 1.0, 0.4, 0.1, 0.1)]
    drawn = [simulate(setting, [4, 8], 10, seed) for seed in range(60)]
    assert drawn[0]["draws_C"].tolist() == [40, 10]
    for c in range(2):
        means = np.array([one["new_PC"][0, c] for one in drawn])
        stderrs = np.array([one["new_stderr_PC"][0, c] for one in drawn])
        assert means.std() == pytest.approx((stderrs**2).mean() ** 0.5, rel=0.35)


@pytest.mark.parametrize(
    ("cls", "wrong", "words"),
    [
        (Fig1, {"dims": [10, 6]}, "figure.dims"),
        (Fig1, {"draws": 1}, "figure.draws=1"),
        (Fig2, {"kappas": [[0.1]]}, "figure.kappas"),
        (Fig2, {"draws": [4]}, "figure.draws"),
        (Fig3, {"alpha_most": 1e303}, "alpha_most"),
        (Fig3, {"errors": ["icl", "ridge", "icl"]}, "figure.errors"),
        (Fig4, {"rho": 0}, "figure.rho"),
    ],
)
def test_settings_that_make_no_figure_are_refused(cls, wrong, words):
    with pytest.raises(InputError, match=words):
        cls(**SETTINGS[cls] | wrong)
