"""Three-way decisions."""

import math

import pytest

from icl.figures.claims import above, below
from icl.verdicts import decide


@pytest.mark.parametrize(
    ("measured", "half_width", "at_most", "is_above", "is_below"),
    [
        (0.9, 0.0, "holds", "fails", "holds"), (1.1, 0.0, "fails", "holds", "fails"),
        (1.0, 0.0, "holds", "fails", "fails"), (1.1, 0.05, "fails", "holds", "fails"),
        (0.9, 0.05, "holds", "fails", "holds"), (0.9, 0.2, "undecided", "undecided", "undecided"),
        (1.1, 0.2, "undecided", "undecided", "undecided"), (1.3, 0.2, "fails", "holds", "fails"),
        (math.nan, 0.0, *["undecided"] * 3), (0.9, math.nan, *["undecided"] * 3),
        (0.9, math.inf, *["undecided"] * 3),
    ],
)  # fmt: skip
def test_an_interval_that_straddles_the_bound_decides_nothing(
    measured: float, half_width: float, at_most: str, is_above: str, is_below: str
) -> None:
    verdicts = [test(measured, 1.0, half_width) for test in (decide, above, below)]
    assert verdicts == [at_most, is_above, is_below]
