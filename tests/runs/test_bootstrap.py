import itertools
import math

import numpy as np
import pytest

from icl.random import generator
from icl.runs import bootstrap as module
from icl.runs.bootstrap import RESAMPLES, bootstrap

NOTHING = {"mean": None, "low": None, "high": None}


def test_intervals_that_say_nothing() -> None:
    assert bootstrap([3.0]) == {"mean": 3.0, "low": None, "high": None}
    assert bootstrap([]) == NOTHING
    assert bootstrap([1.0, math.nan]) == bootstrap([1.0, None, 2.0]) == bootstrap([math.inf, 1.0]) == NOTHING
    assert bootstrap([2.0, 2.0]) == {"mean": 2.0, "low": 2.0, "high": 2.0}


def test_against_all_resamples() -> None:
    """Compare with the 4^4 resamples of four values, whose mean has a known distribution."""
    values = [1.0, 2.0, 4.0, 11.0]
    means = np.sort([np.mean(resample) for resample in itertools.product(values, repeat=4)])
    for level in (0.95, 0.9):
        found = bootstrap(values, level=level)
        assert found["mean"] == 4.5
        for name, below in (("low", (1 - level) / 2), ("high", (1 + level) / 2)):
            # The share of resampled means below a quantile errs by a binomial's deviation; five of them.
            error = 5 * math.sqrt(below * (1 - below) / RESAMPLES)
            low, high = np.quantile(means, [max(below - error, 0), min(below + error, 1)])
            assert low <= found[name] <= high


def test_resamples_are_drawn_and_summed_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare with resamples that are drawn and summed at once, and held in a byte each."""
    values = np.random.default_rng(1).normal(size=300)
    drawn = generator(300, "bootstrap").multinomial(300, [1 / 300] * 300, RESAMPLES)
    ends = values.mean() + np.quantile(drawn @ (values - values.mean()) / 300, [0.025, 0.975])
    for block in (1, 70_000, 1 << 30):
        monkeypatch.setattr(module, "_BLOCK", block)
        module._drawn.cache_clear()
        found = bootstrap(values.tolist())
        assert np.allclose([found["low"], found["high"]], ends, rtol=1e-13)
    assert np.array_equal(module._drawn(300), drawn) and module._drawn(300).itemsize == 1


def test_it_is_the_same_every_time_and_follows_shifts_and_scales() -> None:
    values = [0.3, 1.7, 0.4, 0.9, 1.1]
    assert bootstrap(values) == bootstrap(values)
    moved, plain = bootstrap([2 * value + 1 for value in values]), bootstrap(values)
    assert all(moved[name] == pytest.approx(2 * plain[name] + 1, rel=1e-12) for name in plain)


def test_how_often_it_covers() -> None:
    """Compare with its docstring, within four standard deviations of a binomial and the rounding to 1 in
    100."""
    for count, share in ((5, 0.85), (10, 0.91)):
        draws = np.random.default_rng(count).normal(1.0, 2.0, size=(1500, count))
        covered = [found["low"] <= 1.0 <= found["high"] for found in map(bootstrap, draws.tolist())]
        assert abs(np.mean(covered) - share) < 4 * math.sqrt(share * (1 - share) / 1500) + 0.01
