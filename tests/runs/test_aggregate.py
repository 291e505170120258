import math

from icl.runs.aggregate import aggregate


def test_mean_over_seeds_of_which_an_undefined_one_is_not_averaged_away():
    assert aggregate({"0": 1.0, "3": 2.0}) == {"mean": 1.5, "by_seed": {"0": 1.0, "3": 2.0}}
    assert aggregate({}) == {"mean": None, "by_seed": {}}
    for undefined in (math.nan, math.inf, None):
        assert aggregate({"0": 1.0, "1": undefined}) == {"mean": None, "by_seed": {"0": 1.0, "1": None}}
