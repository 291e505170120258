"""What lu's figures compute."""

from itertools import product

import numpy as np
import pytest

from icl.figures.lu.simulated import Setting, limits, simulate
from icl.theory.lu.limits import plotted
from tests.figures.bases import built
from tests.records import FakeRunner


def test_figure_3_is_the_published_one():
    """Compare with the alphas that the published notebook's rule finds on its own grid of 500: a first local
    minimum, or the smallest alpha where there is none."""
    arrays = built("lu/fig3", grid=3).runs(FakeRunner())["exact"].weights
    alphas, rho = np.geomspace(0.01, 1000, 500), arrays["rhos_N"][1]
    for (p, (tau, is_idg)), k in product(enumerate([(0.5, False), (0.5, True), (20.0, False)]), (0, 1)):
        e_A = np.array([plotted(alpha, arrays["kappas_K"][k], tau, rho)[is_idg] for alpha in alphas])
        minima = 1 + np.flatnonzero((e_A[:-2] > e_A[1:-1]) & (e_A[1:-1] < e_A[2:]))
        assert arrays["alpha_PNK"][p, 1, k] == pytest.approx(alphas[[*minima, 0][0]], rel=0.22)


def test_curves_are_limits_of_each_series_and_points_those_of_the_settings():
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


def test_the_largest_of_three_dims_is_simulated_without_a_ridge():
    records = built("lu/fig1", dims=[2, 3, 4], draws=2).runs(FakeRunner())
    assert [records[name].weights["new_PC"].shape[1] for name in ("plain", "ridge")] == [3, 2]
