import numpy as np
import pytest
import torch

from icl.checks.lds.optimum_s import OptimumS
from icl.checks.lds.support import population, single_heads
from icl.theory.lds import single_head_bound
from icl.theory.lds.single_head_bound import heads_below
from tests.checks.asking import held

FEW_STARTS = {"dim": 2, "length": 10, "restarts": 4}


def test_window_2_is_of_the_pattern():
    finding = held(OptimumS(**FEW_STARTS))
    measured = finding.measured
    assert measured["certified_gap"] == pytest.approx(1e-9, rel=1e-5) and measured["boxes"] > 0
    assert measured["lower_bound"] < measured["best_single_head"]
    assert measured["convex_bound"] <= measured["two_heads"] <= measured["best_single_head"]
    assert measured["best_single_head"] < measured["best_of_other_checkerboard"] < measured["zero_risk"]
    zero, *others = measured["hessian_smallest"]
    assert abs(zero) < 1e-10 and min(others) > 0
    assert measured["W_V_last_column"][1] == 0


@pytest.mark.parametrize(("dim", "length"), [(1, 6), (5, 30)])
def test_a_head_is_below_a_level_where_a_scan_finds_one(dim, length):
    """Compare branch and bound with a scan of all directions of b, of (13) and of all."""
    check = OptimumS(dim=dim, length=length)
    given = population.Population(check.law, 1000, 0)
    free, _ = single_heads.parity_mask(2)
    risks = []
    for angle in np.linspace(0, np.pi, 181):
        b = torch.zeros(3, dtype=torch.float64)
        b[free] = torch.tensor([np.cos(angle), np.sin(angle)])
        risks.append(given.risk.best_with_values(b[None]).value)
    rng, scanned = np.random.default_rng(0), list(risks)
    for b in torch.from_numpy(rng.standard_normal((100, 1, 3))):
        scanned.append(given.risk.best_with_values(b).value)
    least = single_heads.BestHeads.search(given, 4, 0).single.value
    assert least <= min(scanned)
    for mask, found in ((free, risks), (None, scanned)):
        assert heads_below(given.risk, 2, (1 - 1e-9) * least, 20_000, mask)[::2] == (True, False)
        for level in (1.000001 * least, 1.01 * min(found), float(np.median(found))):
            assert heads_below(given.risk, 2, level, 20_000, mask)[::2] == (False, True)
        assert heads_below(given.risk, 2, least, 10, mask)[::2] == (False, False)


def test_the_bound_of_a_box_is_below_every_head_in_it():
    """Draw b in boxes of every size and solve for the keys."""
    check = OptimumS(dim=2, length=8)
    risk = population.Population(check.law, 1000, 0).risk
    design_PXE, goal_X, _ = risk.single_head_design(2)
    rng = np.random.default_rng(1)
    centre_NP = rng.uniform(-1, 1, (200, 3))
    size_NP = 10 ** rng.uniform(-4, -1, (200, 1)) * rng.uniform(0.1, 1, (200, 3))
    face = rng.integers(3, size=200)
    centre_NP[range(200), face], size_NP[range(200), face] = 1, 0
    box = single_head_bound._bound(design_PXE, goal_X, 0.0, centre_NP, size_NP)
    assert np.isfinite(box.low_N).mean() > 0.5
    for _ in range(5):
        b_NP = centre_NP + size_NP * rng.choice([-1, 1, 0.5], (200, 3))
        excess_N = np.array([risk.best_with_values(torch.from_numpy(b[None])).gap for b in b_NP])
        assert (box.low_N <= excess_N + 1e-12).all()
    small = size_NP.max(1) < 1e-3
    assert (box.low_N[small] > 0.5 * box.centre_N[small]).mean() > 0.5


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
