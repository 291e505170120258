import pytest

from icl.checks.xie.prior_gap import PriorGap
from icl.checks.xie.support import gaps
from icl.random import generator
from tests.checks.asking import Mutant, blinded, holds, seen
from tests.checks.xie.test_gd_lower_bound import WIDE


@holds(
    PriorGap,
    {"dim": 7, "context": 13, "prior_mean_norm": 2.0},
    {},
    {"dim": 1, "context": 1, "guess_bias": -0.3},
    {"dim": 6, "context": 2, "prior_mean": [1, 0, 0, -2, 0, 0], "guess_vector_norm": 30.0, "seed": 5},
    {"dim": 3, "context": 10**5},
    *({"dim": 3, "prior_mean_norm": norm} for norm in (1e-12, 1e-9, 1e-6, 1e-2, 1e3, 1e6)),
    {"dim": 2, "guess_bias": 1e-8, "guess_vector_norm": 1e-9},
    of="largest_error_over_rounding",
)
def test_holds_with_the_closed_form(check, finding):
    measured, d, C = finding.measured, check.dim, check.context
    assert measured["gd_risk"] == pytest.approx(d * (d + 1) / (C + d + 1), rel=1e-10)
    assert measured["lsa_risk"] - measured["gd_risk"] == pytest.approx(
        measured["gap"], rel=1e-6, abs=1e-13 + 1e-11 * measured["gap"]
    )
    square = float(check.law.mean_RD.square().sum())
    assert measured["gap"] == pytest.approx(2 * square / (d * C + 2), rel=1e-12)
    for line in (measured, measured["guess_vector"], measured["guess_bias"]):
        assert line["slope"] == pytest.approx(line["predicted_slope"], rel=1e-12)
        assert line["predicted_slope"] == pytest.approx(2 / (d * C + 2), rel=1e-14)
    grid = measured["grid"]
    assert len(grid["dims"]) >= 4 and len(grid["contexts"]) >= 4
    assert d in grid["dims"] and C in grid["contexts"] and min(grid["contexts"]) < max(grid["dims"])


test_a_wrong_slope_or_risk_of_the_step_is_seen = seen(
    PriorGap,
    Mutant(gaps, "gap_slope", lambda right, d, C: (1 + 1e-10) * right(d, C)),
    Mutant(gaps, "gap_slope", lambda right, d, C: 2 / (d * C + d + 1)),  # right at d = 1
    Mutant(gaps, "gap_slope", lambda right, d, C: 2 / (d * C + 1 + C**0.1 / 10**0.1)),  # right at C = 10
    Mutant(gaps, "gd_risk", lambda right, d, C: right(d, C) * (1 + 1e-10)),
    *WIDE,
    blinded(gaps, "share", lambda right, case, slope=None: right(case)),
    dim=3,
    context=10,
)


def test_slopes_that_are_near_are_told_apart():
    """2 / (d C) and 2 / (d C + 2), however small w* is."""
    finding = PriorGap(3, 10**5, prior_mean_norm=1e-7, guess_bias=1e-9).measure()
    assert finding.verdict == "holds" and finding.control.rejected
    assert gaps.line(PriorGap(3, 4, prior_mean_norm=1e-9).law)[-1].w_star_D.norm() == pytest.approx(1)


def test_the_grid_has_w_star_v_and_b_together():
    for case in gaps.grid(3, 4, generator(0, "check")):
        assert case.w_star_D.any() and case.guess_D.any() and case.bias != 0
        assert not case.w_star_D.equal(case.guess_D)
