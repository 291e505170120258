"""Tests of numbers, which know their kind, bound and verdict, and of findings that are made of them."""

import math

import pytest

from icl.checks.numbers import Numbers, exact, finding, sampled, searched, tried
from icl.checks.verdict import Control
from icl.errors import InputError

CONTROL = Control("two", 2.0, True)


@pytest.mark.parametrize(
    ("value", "half_width", "at_most", "above"),
    [
        (1.0, 0.0, "holds", "fails"),  # equal: at most, and not above
        (1.1, 0.0, "fails", "holds"),
        (0.9, 0.2, "undecided", "undecided"),
        (0.7, 0.2, "holds", "fails"),
        (1.3, 0.2, "fails", "holds"),
        (math.nan, 0.0, "undecided", "undecided"),
        (0.0, math.nan, "undecided", "undecided"),
    ],
)
def test_at_most_and_above_are_opposites(value, half_width, at_most, above):
    for otherwise in ("fails", "undecided"):
        more = {"half_width": half_width, "otherwise": otherwise}
        (low,), (high,) = exact(x=value).at_most(1, "", **more), exact(x=value).above(1, "", **more)
        expected = [otherwise if verdict == "fails" else verdict for verdict in (at_most, above)]
        assert [low.verdict, high.verdict] == expected
        assert (low.bound.direction, high.bound.direction) == ("<", ">")
        assert low.bound.of == high.bound.of == "x"


def test_a_finding_lists_every_number_once_with_its_kind_and_meaning():
    found = finding(
        [
            exact(risk=2.0).means("the least risk"),
            tried(error=0.5).at_most(1.0, "rounding").with_bounds(),
            searched(best=[1.0, 2.0]),
        ],
        CONTROL,
        notes=["a note"],
        remarks=["a remark"],
    )
    assert found.measured == {"risk": 2.0, "error": 0.5, "error_bound": 1.0, "best": [1.0, 2.0]}
    assert found.kinds == {"risk": "exact", "error": "tried", "error_bound": "exact", "best": "searched"}
    assert found.meanings == {"risk": "the least risk"}
    assert (found.verdict, found.bound.of, found.bound.source) == ("holds", "error", "rounding")
    assert (found.notes, found.remarks) == (["a note"], ["a remark"])
    with pytest.raises(ValueError, match="one name: risk, risk"):
        finding([exact(risk=1.0), tried(risk=2.0)], CONTROL)
    with pytest.raises(InputError, match="kind=guessed"):
        exact(risk=1.0)[0].__class__("risk", 1.0, "guessed")


def test_numbers_of_one_kind_have_meanings_by_name():
    numbers = exact(risk=2.0, gap=0.5, starts=3).means(risk="least risk", gap="difference of the risks")
    assert [number.meaning for number in numbers] == ["least risk", "difference of the risks", ""]
    assert [number.meaning for number in numbers.means("all")] == ["all"] * 3
    found = finding([numbers.at_most(5.0, "rounding")], CONTROL)
    assert found.bounds.keys() == {"risk", "gap", "starts"} and found.bounds["gap"].of == "gap"
    with pytest.raises(ValueError, match="means: none of error is measured here"):
        exact(risk=2.0).means(error="difference")


@pytest.mark.parametrize(
    ("bounds", "verdict", "of"),
    [
        ({"first": 2, "second": 2}, "holds", "first"),
        ({"first": 2, "second": math.nan}, "undecided", "second"),
        ({"first": math.nan, "second": 0}, "fails", "second"),
        ({"first": 0, "second": 0}, "fails", "first"),
    ],
)
def test_the_first_number_that_decides_gives_the_bound(bounds, verdict, of):
    found = finding(
        [exact(other=7.0), *(exact(**{n: 1.0}).at_most(b, "") for n, b in bounds.items())], CONTROL
    )
    assert (found.verdict, found.bound.of) == (verdict, of)


def test_a_counterexample_fails_the_claim_where_all_holds_and_decides_nothing_otherwise():
    def verdict(value, rejected=True):
        numbers = [exact(excess=value).at_most(1, "")]
        return finding(numbers, Control("", 2.0, rejected), counterexample=True).verdict

    assert [verdict(0.5), verdict(2.0), verdict(math.nan)] == ["fails", "undecided", "undecided"]
    assert verdict(0.5, rejected=False) == "undecided"


def test_what_could_not_have_told_is_undecided():
    low, high = exact(x=0.0).at_most(1, ""), exact(x=2.0).at_most(1, "")

    def verdicts(*numbers: Numbers):
        return [number.verdict for number in sum(numbers, ())]

    assert verdicts(low.holds_only_if(False), high.holds_only_if(False)) == ["undecided", "fails"]
    assert verdicts(low.decides_only_if(False), high.decides_only_if(False)) == ["undecided", "undecided"]
    assert verdicts(low.holds_only_if(True), high.decides_only_if(True)) == ["holds", "fails"]
    assert verdicts(sampled(z=5.0).judged("undecided", "<", 3.0, "")) == ["undecided"]
    assert (low.verdict, high.verdict, Numbers([*low, *high]).verdict) == ("holds", "fails", "fails")


@pytest.mark.parametrize(
    ("error", "value", "verdict", "of"),
    [
        (0.0, 0.0, "holds", "claim"),
        (0.0, 2.0, "fails", "claim"),
        (2.0, 2.0, "undecided", "error"),
        (2.0, 0.0, "undecided", "error"),
    ],
)
def test_a_number_decides_only_where_what_it_rests_on_holds(error, value, verdict, of):
    sound = tried(error=error).at_most(1.0, "", otherwise="undecided")
    claim = exact(claim=value).at_most(1.0, "").provided(exact(other=0.0).at_most(1.0, ""), sound)
    found = finding([claim], CONTROL)
    assert (found.verdict, found.bound.of) == (verdict, of)
