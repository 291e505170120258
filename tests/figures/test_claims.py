from __future__ import annotations

import ast
import math
from pathlib import Path

import pytest

import icl.figures
from icl.errors import InputError
from icl.figures.claims import Claim, above, below
from icl.verdicts import KINDS, joint


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


def test_every_claim_says_what_kind_of_number_decides_it() -> None:
    calls = [
        (path.name, {keyword.arg: keyword.value for keyword in node.keywords})
        for path in sorted((Path(icl.figures.__file__).parent).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Claim"
    ]
    assert len(calls) > 60
    assert all(getattr(keywords["kind"], "value", "") in KINDS for _, keywords in calls)


def test_a_verdict_has_three_values() -> None:
    with pytest.raises(InputError):
        Claim("c", 1.0, "b", "perhaps")
    with pytest.raises(InputError):
        Claim("c", 1.0, "b", "holds", expected="true")
