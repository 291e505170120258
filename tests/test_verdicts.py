"""Tests of three-way decisions."""

import math

import pytest

from icl.figures.claims import Decision, all_of, exact, sampled


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
    number = sampled(measured, half_width)
    decisions = [number.at_most(1), number.above(1), number.below(1)]
    assert [decision.verdict for decision in decisions] == [at_most, is_above, is_below]


def test_several_numbers_decide_together():
    """Fail if one fails, else be undecided if one is; intervals belong to their numbers."""
    cases = {(0.8, 0.9): "holds", (0.8, 1.2): "fails", (0.8, math.nan): "undecided", (): "undecided"}
    assert {values: exact(values).below(1).verdict for values in cases} == cases
    assert sampled([0.8, 0.95], [0.1, 0.01]).below(1).verdict == "holds"
    assert sampled([0.8, 0.95], [0.01, 0.1]).below(1).verdict == "undecided"
    both = all_of("between", exact(0.5).above(0), exact(0.5).below(0.4))
    assert both == Decision("fails", "exact", "between")
