"""What lu's figures compute."""

import numpy as np
import pytest

from icl.figures.lu.simulated import Setting, limits, simulate
from icl.theory.lu.limits import plotted
from tests.figures.bases import base, built
from tests.records import FakeRunner


def test_figure_3_is_the_published_one():
    """Compare at kappa = 1/2, rho = .505 with the alphas that the published notebook's rule finds on its own
    grid of 500: a first local minimum."""
    arrays = base("lu/fig3")[1]["exact"].weights
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
