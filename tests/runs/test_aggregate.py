from __future__ import annotations

import math

import pytest

from icl.runs.aggregate import aggregate


def test_mean_over_seeds():
    assert aggregate({"0": 1.0, "3": 2.0}) == {"mean": 1.5, "by_seed": {"0": 1.0, "3": 2.0}}
    assert aggregate({}) == {"mean": None, "by_seed": {}}


@pytest.mark.parametrize("undefined", [math.nan, math.inf, None])
def test_an_undefined_seed_is_not_averaged_away(undefined):
    assert aggregate({"0": 1.0, "1": undefined}) == {"mean": None, "by_seed": {"0": 1.0, "1": None}}
