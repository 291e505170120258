"""Compare quantiles with scipy.stats, an independent parametrisation of the same distributions."""

import numpy as np
import pytest
from scipy import stats

from icl import stats as ours


@pytest.mark.parametrize("tail", [0.5, 0.025, 5e-4, 1e-9, 1e-40])
def test_normal_and_student_agree_in_the_tail(tail: float) -> None:
    assert ours.normal(tail) == pytest.approx(stats.norm.isf(tail), rel=1e-12, abs=1e-15)
    for freedom in (1, 4, 9, 200):
        expected = stats.t.isf(tail, freedom)
        assert ours.student(tail, freedom) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_the_interval_of_a_proportion_agrees_with_binomtest() -> None:
    for count, of in ((0, 1), (1, 1), (0, 64), (64, 64), (3, 64), (40, 64), (999, 100_000)):
        expected = stats.binomtest(count, of).proportion_ci(0.999, "exact")
        assert ours.proportion(5e-4, count, of) == pytest.approx((expected.low, expected.high), rel=1e-9)


def test_the_fair_coin_agrees_with_a_sum_of_probabilities() -> None:
    for tosses in (1, 2, 9, 64, 1001):
        cumulated = stats.binom.pmf(np.arange(tosses + 1), tosses, 0.5).cumsum()
        for level in (1e-12, 5e-4, 0.3, 0.7, 0.999):
            assert ours.fair_coin(level, tosses) == int(np.searchsorted(cumulated, level))
