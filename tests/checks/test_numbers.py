"""Tests of numbers, which know their kind, bound and verdict, and of findings that are made of them."""

import math

import numpy as np
import pytest
import torch

from icl.checks.differences import gradient_norm
from icl.checks.numbers import Numbers, exact, finding, sampled, searched, second, tried
from icl.checks.sequential import compare
from icl.checks.verdict import Control, Route
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


@pytest.mark.parametrize(
    ("first", "value", "more", "off", "agrees"),
    [
        (2.0, 2.0 * (1 + 1e-10), {}, 1e-10, True),
        (2.0, 2.0 * (1 + 1e-8), {}, 1e-8, False),
        (0.0, 0.0, {}, 0.0, True),
        (1e-16, 0.0, {}, 1.0, False),  # a zero needs the size of its terms
        (1e-16, 0.0, {"size": 1.0}, 1e-16, True),
        ([1.0, 2.0], [1.0, 2.0 + 1e-6], {}, 5e-7, False),  # the largest over entries
        ({"a": [1.0], "b": 2.0}, {"a": [1.0], "b": 2.0}, {}, 0.0, True),
        (1.0, 1.3, {"stderr": 0.1}, 3.0, True),  # 3.29 standard errors for one number
        (1.0, 1.4, {"stderr": 0.1}, 4.0, False),
        ([1.0] * 20, [1.4] + [1.0] * 19, {"stderr": [0.1] * 20}, 4.0, True),  # 4.06 for twenty together
        (math.nan, 1.0, {}, math.nan, False),
        (1.0, math.nan, {"stderr": 0.1}, math.nan, False),
    ],
)
def test_how_near_a_second_route_comes(first, value, more, off, agrees):
    route = second("another way", first, value, **more)
    assert route.off == pytest.approx(off, rel=1e-5, abs=1e-15, nan_ok=True) and route.agrees == agrees
    assert route.unit == ("standard errors" if "stderr" in more else "relative")


@pytest.mark.parametrize(
    ("value", "bound"), [(1.0, 2.0), (1.0, 0.5)]
)  # a number that holds, and one that fails
def test_nothing_is_decided_where_two_routes_disagree(value, bound):
    def found(other):
        return finding([exact(x=value).also_by("another way", x=other).at_most(bound, "")], CONTROL)

    assert found(value).verdict == ("holds" if value <= bound else "fails") and not found(value).notes
    apart = found(1.001 * value)
    assert apart.verdict == "undecided" and not apart.routes["x"].agrees
    assert apart.notes == [
        "undecided: x and the same by another way differ by 0.000999 (relative), more than 1e-09"
    ]


def test_a_number_that_compares_two_routes_says_so_for_both():
    numbers = exact(gap=1.0).compared_by("gap_error", "closed form"), exact(gap_error=0.5).at_most(1, "")
    route = finding(numbers, CONTROL).routes["gap"]
    assert (route.off, route.within, route.agrees, route.by) == (0.5, 1, True, "gap_error")
    with pytest.raises(ValueError, match="gap_error has no bound"):
        finding([numbers[0], exact(gap_error=0.5), exact(x=1.0).at_most(1, "")], CONTROL)
    with pytest.raises(ValueError, match="none of y is measured"):
        exact(x=1.0).also_by("another way", y=1.0)
    (noted,) = exact(x=1.0).at_most(1, "").with_bounds()[1:]
    assert noted.route == Route("definition")


def test_a_sample_is_a_second_route():
    rng = np.random.default_rng(0)

    def draw(batch):
        return torch.from_numpy(rng.standard_normal((batch, 2)))

    right, wrong = (compare(draw, torch.tensor([0.0, mean]).double(), 1000, 2000) for mean in (0.0, 1.0))
    assert right.route("draws", 0, 1).agrees and right.route("draws", 1).value == right.mean_K[1]
    assert not wrong.route("draws", 0, 1).agrees and wrong.route("draws", 0, 1).off > 30


def test_differences_find_a_gradient_and_what_is_missing_in_it():
    weights = [torch.tensor([0.3, -0.2]).double(), torch.tensor([[1.1, 0.7]]).double()]

    def value(a, b):
        return (a @ b[0] + 1) ** 3 + a[0] ** 6

    leaves = [weight.clone().requires_grad_() for weight in weights]
    gradients = torch.autograd.grad(value(*leaves), leaves)
    norm = float(torch.cat([gradient.flatten() for gradient in gradients]).norm())
    rng = np.random.default_rng(0)
    assert gradient_norm(value, weights, gradients, rng) == pytest.approx(norm, rel=1e-11)
    partly = [gradients[0], 0 * gradients[1]]
    assert gradient_norm(value, weights, partly, rng) > 1.01 * float(partly[0].norm())
    at_zero = [0 * weight for weight in weights]
    assert gradient_norm(lambda a, b: (a @ b[0]) ** 2, at_zero, at_zero, rng) < 1e-15
