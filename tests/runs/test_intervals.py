import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from icl.runs.intervals import RANGE, STUDENT, interval_fields, seed_interval

NOTHING = {"mean": None, "low": None, "high": None}
PAGE = Path(__file__).parents[2] / "docs" / "sweeps.md"


def test_intervals_that_say_nothing() -> None:
    assert seed_interval([3.0]) == {"mean": 3.0, "low": None, "high": None}
    assert seed_interval([]) == NOTHING
    for undefined in ([1.0, math.nan], [1.0, None, 2.0], [math.inf, 1.0]):
        assert seed_interval(undefined) == NOTHING
    assert interval_fields([3.0])["interval"] == interval_fields([1.0, None])["interval"] == ""


def test_few_seeds_have_a_range() -> None:
    for values in ([2.0, 1.0], [4.0, 1.0, 2.0, 1.0]):
        found = interval_fields(values)
        assert found == {
            "mean": sum(values) / len(values), "low": 1.0, "high": max(values), "interval": RANGE,
        }  # fmt: skip


def test_from_five_seeds_on_it_is_students() -> None:
    values = [0.3, 1.7, 0.4, 0.9, 1.1, 12.0]
    for many in (values[:5], values, [1e200 * value for value in values]):
        found = interval_fields(many)
        error = stats.sem(np.array(many) / many[1]) * many[1]
        wanted = stats.t.interval(0.95, len(many) - 1, np.mean(many), error)
        assert (found["low"], found["high"]) == pytest.approx(wanted, rel=1e-9)
        assert found["interval"] == STUDENT
    assert seed_interval([2.0] * 7) == {"mean": 2.0, "low": 2.0, "high": 2.0}


def covered(law: str, count: int, draws: int = 4000) -> float:
    """Return how often the interval of `count` seeds covers the mean of a law of losses."""
    rng = np.random.default_rng(count)
    mean, values = {
        "normal": (1.0, rng.normal(1.0, 2.0, (draws, count))),
        "log-normal": (math.exp(0.5), rng.lognormal(0.0, 1.0, (draws, count))),
        "Pareto": (2.5 / 1.5, 1 + rng.pareto(2.5, (draws, count))),
    }[law]
    found = map(seed_interval, values.tolist())
    return float(np.mean([one["low"] <= mean <= one["high"] for one in found]))


def test_it_covers_as_often_as_the_page_says() -> None:
    """Compare within four standard deviations of a binomial, and the rounding to a whole per cent."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if " seeds |" in line]
    shares = {(row[0], int(row[1].split()[0])): int(row[2]) / 100 for row in rows}
    assert {law for law, _ in shares} == {"normal", "log-normal", "Pareto"}
    assert {count for _, count in shares} == {5, 8, 20}
    for (law, count), share in shares.items():
        error = 4 * math.sqrt(share * (1 - share) / 4000) + 0.005
        assert abs(covered(law, count) - share) < error, (law, count)
