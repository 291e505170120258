from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from icl.runs.aggregate import aggregate, interval


def test_mean_over_seeds():
    assert aggregate({"0": 1.0, "3": 2.0}) == {"mean": 1.5, "by_seed": {"0": 1.0, "3": 2.0}}
    assert aggregate({}) == {"mean": None, "by_seed": {}}


@pytest.mark.parametrize("undefined", [math.nan, math.inf, None])
def test_an_undefined_seed_is_not_averaged_away(undefined):
    assert aggregate({"0": 1.0, "1": undefined}) == {"mean": None, "by_seed": {"0": 1.0, "1": None}}


def test_interval_against_scipy_and_a_table():
    values = [1.0, 2.0, 4.0, 8.0, 16.0]
    found = interval(values)
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert found["mean"] == 6.2
    np.testing.assert_allclose([found["low"], found["high"]], [expected.low, expected.high], rtol=1e-12)
    # Student's table: 2.776 at four degrees of freedom.
    half = 2.776 * np.std(values, ddof=1) / math.sqrt(5)
    assert found["high"] - 6.2 == pytest.approx(half, rel=1e-3)


def test_intervals_that_say_nothing():
    assert interval([3.0]) == {"mean": 3.0, "low": None, "high": None}
    assert interval([]) == {"mean": None, "low": None, "high": None}
    assert interval([1.0, math.nan]) == {"mean": None, "low": None, "high": None}
    assert interval([2.0, 2.0]) == {"mean": 2.0, "low": 2.0, "high": 2.0}


def test_interval_covers_as_often_as_it_says():
    draws = np.random.default_rng(0).normal(1.0, 2.0, size=(2000, 5))
    covered = [found["low"] <= 1.0 <= found["high"] for found in map(interval, draws.tolist())]
    # Four standard deviations of a binomial around 0.95.
    assert abs(np.mean(covered) - 0.95) < 4 * math.sqrt(0.95 * 0.05 / 2000)
