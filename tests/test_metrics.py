"""Tests of a run's metrics: the file, means and intervals over seeds, kinds, and the steps at which they are
kept."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from icl.errors import InputError
from icl.metrics import (
    RANGE,
    RISKS,
    STUDENT,
    aggregate,
    kind_of,
    log_spaced_steps,
    metrics_csv,
    parse_metrics,
    seed_interval,
)  # fmt: skip

CELLS = st.none() | st.integers() | st.floats()
ROWS = st.lists(
    st.fixed_dictionaries({"step": st.integers(0, 10**9), "seed": st.integers(0, 99), "x": CELLS})
)
SIX = [0.3, 1.7, 0.4, 0.9, 1.1, 12.0]


def bits(value):
    return value.hex() if isinstance(value, float) else value


@given(rows=ROWS)
def test_round_trip_is_bit_for_bit(rows):
    table = parse_metrics(metrics_csv(rows, ["step", "seed", "x"]))
    assert list(table) == ["step", "seed", "x"]
    for name, column in table.items():
        assert [bits(value) for value in column] == [bits(row[name]) for row in rows]
        assert all(type(value) is type(row[name]) for value, row in zip(column, rows, strict=True))


def test_what_lies_in_the_file():
    rows = [{"step": 0, "loss": np.float32(0.1), "note": None}, {"step": np.int64(5), "loss": math.nan}]
    assert metrics_csv(rows) == f"step,loss,note\n0,{float(np.float32(0.1))!r},\n5,nan,\n"
    assert metrics_csv([]) == "" and parse_metrics("") == {}
    with pytest.raises(ValueError, match="surprise"):
        metrics_csv([{"step": 0}, {"step": 1, "surprise": 2}])


def test_an_undefined_seed_is_not_averaged_away():
    assert aggregate({"0": 1.0, "3": 2.0}) == {"mean": 1.5, "by_seed": {"0": 1.0, "3": 2.0}}
    assert aggregate({}) == {"mean": None, "by_seed": {}}
    for undefined in (math.nan, math.inf, None):
        assert aggregate({"0": 1.0, "1": undefined}) == {"mean": None, "by_seed": {"0": 1.0, "1": None}}


@pytest.mark.parametrize(
    ("values", "mean", "low", "high", "interval"),
    [
        ([3.0], 3.0, None, None, ""), ([], None, None, None, ""), ([math.inf, 1.0], None, None, None, ""),
        ([1.0, None, 2.0], None, None, None, ""), ([2.0, 1.0], 1.5, 1.0, 2.0, RANGE),
        ([4.0, 1.0, 2.0, 1.0], 2.0, 1.0, 4.0, RANGE), ([2.0] * 7, 2.0, 2.0, 2.0, STUDENT),
    ],
)  # fmt: skip
def test_an_interval(values, mean, low, high, interval):
    assert seed_interval(values) == {"mean": mean, "low": low, "high": high, "interval": interval}


@pytest.mark.parametrize("many", [SIX[:5], SIX, [1e200 * value for value in SIX]])
def test_from_five_seeds_on_it_is_students(many):
    error = stats.sem(np.array(many) / many[1]) * many[1]
    wanted = stats.t.interval(0.95, len(many) - 1, np.mean(many), error)
    found = seed_interval(many)
    assert (found["low"], found["high"]) == pytest.approx(wanted, rel=1e-9)


def test_every_risk_says_what_it_is():
    kinds = {"exact_risk": "exact", "risk_estimate": "sampled", "risk_on_s": "projected"}
    assert {name: kind_of(name) for name in RISKS} == kinds | {"risk_old": "", "risk_new": ""}
    assert kind_of("loss") == "training" and kind_of("dist_plain") == ""
    for name in ("gradient_norm", "risk_old"):  # exact where the error is zero
        assert kind_of(name, [0.0, 0.0]) == "exact" and kind_of(name, [0.0, 1e-3]) == "sampled"


@pytest.mark.parametrize("total", [1, 2, 100, 30_000])
@pytest.mark.parametrize("count", [1, 2, 8, 50])
def test_log_spaced_steps(total, count):
    steps = log_spaced_steps(total, count)
    assert steps == sorted(set(steps)) and steps[-1] == total and len(steps) <= count
    assert count == 1 or steps[0] == 1


def test_log_spaced_steps_double_where_they_can():
    assert log_spaced_steps(1024, 11) == [2**power for power in range(11)]
    with pytest.raises(InputError):
        log_spaced_steps(0, 3)
