from __future__ import annotations

import math

import pytest

from icl.errors import InputError
from icl.figures.claims import Claim, above, below
from icl.verdicts import joint


@pytest.mark.parametrize(
    ("measured", "half_width", "verdict"),
    [
        (0.9, 0.0, "holds"),
        (1.0, 0.0, "fails"),
        (1.1, 0.0, "fails"),
        (0.9, 0.2, "undecided"),
        (1.1, 0.2, "undecided"),
        (1.3, 0.2, "fails"),
    ],
)
def test_below_takes_the_whole_interval(measured: float, half_width: float, verdict: str) -> None:
    assert below(measured, 1.0, half_width) == verdict
    assert above(-measured, -1.0, half_width) == verdict


def test_what_is_no_number_decides_nothing() -> None:
    assert below(math.nan, 1.0) == above(math.nan, 1.0) == below(0.0, 1.0, math.nan) == "undecided"


def test_a_part_that_fails_decides() -> None:
    assert joint(["holds", "undecided", "fails"]) == "fails"
    assert joint(["holds", "undecided"]) == "undecided"
    assert joint(["holds"]) == "holds"


def test_a_verdict_has_three_values() -> None:
    with pytest.raises(InputError):
        Claim("c", 1.0, "b", "perhaps")
    with pytest.raises(InputError):
        Claim("c", 1.0, "b", "holds", expected="true")
