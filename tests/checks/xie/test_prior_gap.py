import pytest

from icl.checks.xie.prior_gap import PriorGap
from icl.checks.xie.support import gaps
from icl.random import generator


def test_slopes_that_are_near_are_told_apart():
    """Compare 2 / (d C) and 2 / (d C + 2), however small w* is."""
    finding = PriorGap(3, 10**5, prior_mean_norm=1e-7, guess_bias=1e-9).measure()
    assert finding.verdict == "holds" and finding.control.rejected
    assert gaps.line(PriorGap(3, 4, prior_mean_norm=1e-9).law)[-1].w_star_D.norm() == pytest.approx(1)


def test_the_grid_has_w_star_v_and_b_together():
    for case in gaps.grid(3, 4, generator(0, "check")):
        assert case.w_star_D.any() and case.guess_D.any() and case.bias != 0
        assert not case.w_star_D.equal(case.guess_D)
