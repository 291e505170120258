import numpy as np
import pytest
import torch

from icl.checks.lds.optimum_s import OptimumS
from icl.checks.lds.support import population, single_heads
from icl.checks.lds.support.heads_above import all_heads_above
from tests.checks.asking import held

FEW_STARTS = {"dim": 2, "length": 10, "restarts": 4}


def test_window_2_is_of_the_pattern():
    finding = held(OptimumS(**FEW_STARTS), verdict="undecided")
    measured = finding.measured
    assert any("no proof" in note for note in finding.notes)
    assert measured["convex_bound"] <= measured["two_heads"] <= measured["best_single_head"]
    assert measured["best_single_head"] < measured["best_of_other_checkerboard"] < measured["zero_risk"]
    zero, *others = measured["hessian_smallest"]
    assert abs(zero) < 1e-10 and min(others) > 0
    assert measured["W_V_last_column"][1] == 0


def test_no_head_of_the_pattern_is_below_its_least_risk():
    """Compare eigenvalues with a scan of all directions of b; levels below the least risk are refused."""
    check = OptimumS(window=3, dim=2, length=10)
    given = population.Population(check.law, 1000, 0)
    free, _ = single_heads.parity_mask(3)
    risks = []
    for angle in np.linspace(0, np.pi, 721):
        b = torch.zeros(4, dtype=torch.float64)
        b[free] = torch.tensor([np.cos(angle), np.sin(angle)])
        risks.append(given.risk.best_with_values(b[None]).value)
    least = min(risks)
    assert all_heads_above(given, free, 0.9999 * least, 1e-4 * least)
    for level in (least, 1.0001 * least, float(np.median(risks)), 0.999 * max(risks)):
        assert not all_heads_above(given, free, level, 1e-4 * least)


@pytest.mark.slow
def test_window_3_of_the_paper_is_not():
    """Search at d = 5, T = 30, setting (a): the best head has b on entries 1 and 3, not 2 and 4."""
    finding = OptimumS(window=3).measure()
    measured = finding.measured
    assert finding.verdict == "fails" and finding.control.rejected
    assert finding.bound.of == "pattern_excess"
    assert measured["best_single_head"] == pytest.approx(0.0470853209, rel=1e-8)
    assert measured["best_of_pattern"] == pytest.approx(0.0470869419, rel=1e-8)
    assert measured["convex_bound"] == pytest.approx(0.0469735416, rel=1e-8)
    assert [entry == 0 for entry in measured["W_V_last_column"]] == [False, True, False, True]


def test_averaged_settings_have_an_error():
    finding = OptimumS(setting="d", samples=600, **FEW_STARTS).measure()
    assert finding.verdict == "undecided"
    assert finding.measured["pattern_excess_stderr"] >= 0
