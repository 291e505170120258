"""Tests of lu's figures on records computed small, and on records that contradict their claims."""

import numpy as np
import pytest

from icl.errors import InputError
from icl.experiments.lu.context_length import ContextLength
from icl.experiments.lu.double_descent import DoubleDescent
from icl.experiments.lu.nonmonotone import Nonmonotone
from icl.experiments.lu.simulated import Setting, limits, simulate
from icl.experiments.lu.task_diversity import TaskDiversity
from icl.figures.lu.fig1 import Fig1
from icl.figures.lu.fig2 import Fig2
from icl.figures.lu.fig3 import Fig3
from icl.figures.lu.fig4 import Fig4
from icl.theory.lu.limits import Limit
from tests.records import FakeRunner, record

DESCENT = ([1.0, 10.0], [0.3, 0.8, 1.3, 2.0], [1e-5, 1.0], 0.5, 0.01, [6, 10], 20, 0)
LENGTH = ([1.0, 1000.0], [0.5, 20.0], [0.5, 0.1], [[0.1, 0.5, 2.0], [0.2, 1.5]], [6, 10], [20, 4], 0)
DIVERSITY = ([10.0, 20.0], [0.3, 5.0], [0.3, 6.0], 0.2, 0.01, [6, 10], 6, 40, 0)


@pytest.fixture(scope="module")
def drawn():
    """Return the records of every figure, by the figure."""
    made = {
        Fig1: DoubleDescent(*DESCENT),
        Fig2: ContextLength(*LENGTH),
        Fig3: Nonmonotone([0.5, 0.5, 20.0], ["icl", "idg", "icl"], 1000.0, 21, 60),
        Fig4: TaskDiversity(*DIVERSITY),
    }
    return {
        figure: {
            name: record(weights=found.weights, run={"seeds": []})
            for name, found in experiment.records(FakeRunner()).items()
        }
        for figure, experiment in made.items()
    }


def verdicts(figure, records, **changed):
    """Return the claims' verdicts, with the arrays of some records replaced."""
    records = {
        name: record(weights=found.weights | changed.get(name, {}), run={"seeds": []})
        for name, found in records.items()
    }
    return [claim.verdict for claim in figure().claims(records)]


@pytest.mark.parametrize("figure", [Fig1, Fig2, Fig3, Fig4])
def test_its_claims_hold(drawn, figure):
    assert set(verdicts(figure, drawn[figure])) == {"holds"}
    figure().draw(drawn[figure])
    assert {row["panel"] for row in figure().data(drawn[figure])} >= set(
        figure().layout_of(drawn[figure]).panels
    )


def test_figure_1_sees_what_is_wrong(drawn):
    records = drawn[Fig1]
    plain, ridge = (records[name].weights for name in ("plain", "ridge"))
    flat = {"new_curve_SX": np.ones_like(plain["new_curve_SX"])}
    assert verdicts(Fig1, records, plain=flat)[0] == "fails"
    level = {"new_PC": np.ones_like(plain["new_PC"]), "new_stderr_PC": 0 * plain["new_PC"]}
    assert verdicts(Fig1, records, plain=level)[1:3] == ["fails", "fails"]
    noisy = {"new_stderr_PC": 1e3 + 0 * plain["new_PC"]}
    assert verdicts(Fig1, records, plain=noisy)[1:3] == ["undecided", "undecided"]
    assert verdicts(Fig1, records, plain={"new_PC": plain["new_PC"][:, ::-1]})[3] == "fails"
    peaked = {"new_curve_SX": ridge["new_curve_SX"][:1].repeat(2, 0)}
    assert verdicts(Fig1, records, ridge=peaked)[4] == "fails"


def test_figure_2_sees_what_is_wrong(drawn):
    records = drawn[Fig2]
    a, b = (records[name].weights for name in ("a", "b"))
    assert verdicts(Fig2, records, a={"old_curve_SX": a["old_curve_SX"][[1, 0, 2]]})[0] == "fails"
    assert verdicts(Fig2, records, b={"new_curve_SX": -np.sort(-b["new_curve_SX"])})[1] == "fails"
    level = {"new_PC": np.ones_like(b["new_PC"]), "new_stderr_PC": 0 * b["new_PC"]}
    assert verdicts(Fig2, records, b=level)[2] == "fails"
    assert verdicts(Fig2, records, a={"old_PC": a["old_PC"][:, ::-1]})[3] == "fails"


def test_figure_3_sees_what_is_wrong(drawn):
    records = drawn[Fig3]
    rise = records["exact"].weights["rise_PNK"]
    assert verdicts(Fig3, records, exact={"rise_PNK": 0 * rise})[::2] == ["fails", "fails"]
    everywhere = verdicts(Fig3, records, exact={"rise_PNK": 1 + rise})
    assert everywhere == ["holds", "fails", "fails", "fails"]


def test_figure_3_is_the_published_one_but_at_its_edge(drawn):
    """Compare at kappa = 1/2, rho = .505 with the alphas that the published notebook's rule finds on its own
    grid of 500: a first local minimum."""
    arrays = drawn[Fig3]["exact"].weights
    alphas = np.geomspace(0.01, 1000, 500)
    k, n = (int(np.abs(arrays[name] - x).argmin()) for name, x in (("kappas_K", 0.5), ("rhos_N", 0.5)))
    kappa, rho = arrays["kappas_K"][k], arrays["rhos_N"][n]
    for p, (tau, error) in enumerate([(0.5, "icl"), (0.5, "idg"), (20.0, "icl")]):
        e_A = np.array([getattr(Limit(alpha, kappa, tau, rho), error) for alpha in alphas])
        first = 1 + np.flatnonzero((e_A[:-2] > e_A[1:-1]) & (e_A[1:-1] < e_A[2:]))[0]
        assert arrays["alpha_PNK"][p, n, k] == pytest.approx(alphas[first], rel=0.22)  # of either grid


def test_figure_4_sees_what_is_wrong(drawn):
    records = drawn[Fig4]
    attention, dmmse = (records[name].weights for name in ("attention", "dmmse"))
    assert verdicts(Fig4, records, attention={"gap_curve_SX": 1 + attention["gap_curve_SX"]})[0] == "fails"
    assert verdicts(Fig4, records, dmmse={"gap_AK": 0 * dmmse["gap_AK"]})[2] == "fails"


def test_curves_are_limits_of_each_series_and_points_those_of_the_settings():
    settings = [Setting(alpha, 0.5, tau, 0.1, 0.2) for alpha in (1.0, 3.0) for tau in (0.5, 2.0)]
    found = limits(settings, "tau")
    assert found["new_curve_SX"].shape == (2, 151) and found["x_X"][[0, -1]] == pytest.approx([0.5, 2.0])
    assert found["new_curve_SX"][1, -1] == pytest.approx(found["new_limit_P"][3])
    assert found["old_limit_P"][2] == Limit(3.0, 0.5, 0.5, 0.1).ridge(0.2)[1]


def test_means_and_standard_errors_are_those_of_repeated_draws():
    """Compare with the spread over other seeds."""
    setting = [Setting(5.0, 1.0, 0.4, 0.1, 0.1)]
    drawn = [simulate(setting, [4, 8], 10, seed) for seed in range(60)]
    assert drawn[0]["draws_C"].tolist() == [40, 10]
    for c in range(2):
        means = np.array([one["new_PC"][0, c] for one in drawn])
        stderrs = np.array([one["new_stderr_PC"][0, c] for one in drawn])
        assert means.std() == pytest.approx((stderrs**2).mean() ** 0.5, rel=0.35)


def test_sizes_that_make_no_figure_are_refused():
    for make, given, at, wrong, words in (
        (DoubleDescent, DESCENT, 5, [10, 6], "dims"),
        (DoubleDescent, DESCENT, 6, 1, "draws=1"),
        (ContextLength, LENGTH, 3, [[0.1]], "kappas"),
        (ContextLength, LENGTH, 5, [4], "draws"),
        (TaskDiversity, DIVERSITY, 4, 0, "rho"),
    ):
        with pytest.raises(InputError, match=words):
            make(*given[:at], wrong, *given[at + 1 :])
    for alpha_most in (1.0, 1e303):
        with pytest.raises(InputError, match="alpha_most"):
            Nonmonotone([0.5], ["icl"], alpha_most, 6, 60)
    with pytest.raises(InputError, match="errors"):
        Nonmonotone([0.5], ["icl", "ridge"], 10.0, 6, 60)
