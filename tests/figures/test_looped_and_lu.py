"""Tests of what looped's and lu's figures compute."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from flint import arb

from icl.figures.looped.fig1 import Fig1
from icl.figures.looped.fig3 import Fig3
from icl.figures.lu.simulated import Setting, limits, simulate
from icl.tasks import LinearRegression
from icl.theory.looped.descent import descend, plane_risk
from icl.theory.looped.equal_steps import EqualSteps
from icl.theory.lu.limits import plotted
from tests.figures.bases import base, built
from tests.records import FakeRunner, mark, record


def test_risks_at_two_covariates_are_those_of_the_quadrature_rule():
    """Compare rational risks with Gauss nodes; plain descent at Sigma = 2 I with
    the best multiple."""
    arrays = base("looped/fig1")[1]["exact"].weights
    again_M = arrays["scalar_again_NLM"][0, 2]
    steps = EqualSteps(2, 20, 3)
    expected = [plane_risk(20, M).with_gradient(steps.best * np.eye(2))[0] for M in range(1, 7)]
    assert again_M == pytest.approx(expected, rel=1e-9)
    assert arrays["best_again_NLM"][0, 2, 2] == pytest.approx(arrays["best_NL"][0, 2], rel=1e-9)
    assert arrays["separate_NL"][0, 2] == pytest.approx(float(arb(steps.separate_risk)))
    assert (arrays["plain_NL"] > arrays["scalar_NL"]).all()
    same = Fig1([20], [3], 3, [1.0, 4.0], covariance=[[2, 0], [0, 2]]).runs(FakeRunner())["exact"].weights
    assert same["plain_NL"] == pytest.approx(same["scalar_NL"], rel=1e-7)


def test_gains_are_those_of_a_descent_on_the_quadrature_rule():
    gain_NL = base("looped/fig2")[1]["gains"].weights["gain_CNL"][0]
    assert gain_NL[0].tolist() == pytest.approx([0, 0, 0.00492], abs=1e-5)
    steps, start_DD = EqualSteps(2, 50, 3), np.array([[0.7, -0.2], [0.2, 0.7]])
    risk = descend(plane_risk(50, 3), start_DD, 500)[1][-1]
    assert gain_NL[2, 2] == pytest.approx(1 - risk / steps.least_risk, rel=1e-5)


def test_training_is_compared_with_the_saddle_and_the_minimum(monkeypatch):
    """The best multiple of Sigma^-1 in the place of trained weights has the saddle's risk."""
    steps, sigma = EqualSteps(2, 20, 3), [[2, 0.3], [0.3, 1]]
    law = LinearRegression(2, 20, covariance=sigma, task_covariance="inverse").law([0])
    model = SimpleNamespace(parametrization=SimpleNamespace(layers=3))
    A_RLDD = steps.best * np.linalg.inv(sigma)[None, None]
    run = record(law=law, transformer=model, weights={"A": A_RLDD}, run=mark(3, [0]))
    monkeypatch.setattr("icl.figures.looped.fig3.restored", lambda run: run)
    exact = Fig3(descent_steps=300).runs(FakeRunner(lambda *asked: run))["exact"].weights
    assert exact["scalar_risk"] == pytest.approx(steps.least_risk)
    assert exact["trained_risk_R"] == pytest.approx([steps.least_risk])
    assert exact["scalar_risk_T"][-1] == pytest.approx(steps.least_risk)
    assert exact["random_risk_T"][-1] == pytest.approx(exact["best_risk"], rel=0.01)


def test_lus_figure_3_is_the_published_one():
    """Compare with the alphas that the published notebook's rule finds on its own grid of 500: a first local
    minimum, or the smallest alpha where there is none."""
    arrays = built("lu/fig3", grid=3).runs(FakeRunner())["exact"].weights
    alphas, rho = np.geomspace(0.01, 1000, 500), arrays["rhos_N"][1]
    for (p, (tau, is_idg)), k in product(enumerate([(0.5, False), (0.5, True), (20.0, False)]), (0, 1)):
        e_A = np.array([plotted(alpha, arrays["kappas_K"][k], tau, rho)[is_idg] for alpha in alphas])
        minima = 1 + np.flatnonzero((e_A[:-2] > e_A[1:-1]) & (e_A[1:-1] < e_A[2:]))
        assert arrays["alpha_PNK"][p, 1, k] == pytest.approx(alphas[[*minima, 0][0]], rel=0.22)


def test_lus_curves_are_limits_of_each_series_and_points_those_of_the_settings():
    settings = [Setting(alpha, 0.5, tau, 0.1, 0.2) for alpha in (1.0, 3.0) for tau in (0.5, 2.0)]
    found = limits(settings, "tau")
    assert found["new_curve_SX"].shape == (2, 151) and found["x_X"][[0, -1]] == pytest.approx([0.5, 2.0])
    assert found["new_curve_SX"][1, -1] == pytest.approx(found["new_limit_P"][3])


def test_means_and_standard_errors_are_those_of_repeated_draws():
    """Compare with the spread over other seeds."""
    setting = [Setting(5.0, 1.0, 0.4, 0.1, 0.1)]
    drawn = [simulate(setting, [4, 8], 10, seed) for seed in range(60)]
    assert drawn[0]["draws_C"].tolist() == [40, 10]
    for c in range(2):
        means = np.array([one["new_PC"][0, c] for one in drawn])
        stderrs = np.array([one["new_stderr_PC"][0, c] for one in drawn])
        assert means.std() == pytest.approx((stderrs**2).mean() ** 0.5, rel=0.35)


def test_the_largest_of_lus_three_dims_is_simulated_without_a_ridge():
    records = built("lu/fig1", dims=[2, 3, 4], draws=2).runs(FakeRunner())
    assert [records[name].weights["new_PC"].shape[1] for name in ("plain", "ridge")] == [3, 2]
