"""Three-way decisions."""

import math

import pytest

from icl.figures.claims import above
from icl.verdicts import decide


@pytest.mark.parametrize(
    ("measured", "half_width", "at_most", "at_least"),
    [
        (0.9, 0.0, "holds", "fails"), (1.0, 0.0, "holds", "holds"), (1.1, 0.0, "fails", "holds"),
        (0.9, 0.1, "holds", "undecided"), (1.1, 0.1, "undecided", "holds"), (1.1, 0.05, "fails", "holds"),
        (math.nan, 0.0, "undecided", "undecided"), (0.9, math.nan, "undecided", "undecided"),
        (0.9, math.inf, "undecided", "undecided"),
    ],
)  # fmt: skip
def test_an_interval_that_straddles_the_bound_decides_nothing(
    measured: float, half_width: float, at_most: str, at_least: str
) -> None:
    bound = 1.0
    assert (decide(measured, bound, half_width), above(measured, bound, half_width)) == (at_most, at_least)
