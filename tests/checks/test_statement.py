"""Tests of the frame: what decides, what does not, and why."""

import math
from dataclasses import dataclass

import pytest
from flint import arb, fmpq

from icl.checks import Measured, Sample, Statement, setting
from icl.checks.statement import Blurred, decided, text
from icl.errors import InputError
from icl.theory.blurred import Undecided

ONE = fmpq(1)
BALL = arb(0, fmpq(1, 1000))  # around 0


def measured(*calls, control=ONE):
    m = Measured()
    for name, *given in calls:
        more = given.pop() if given and isinstance(given[-1], dict) else {}
        getattr(m, name)("x", *given, "what it is", **more)
    if control is not None:
        m.control("a wrong one", control, of="x")
    return m


@pytest.mark.parametrize(
    ("verdict", "calls", "control"),
    [
        ("holds", [("zero", fmpq(0))], fmpq(1)),
        ("holds", [("zero", 0)], 1),
        ("fails", [("zero", fmpq(1, 10**30))], fmpq(1)),
        ("undecided", [("zero", fmpq(0))], fmpq(0)),
        ("undecided", [("zero", fmpq(1))], fmpq(0)),  # fails needs a control as well
        ("undecided", [("zero", fmpq(0))], None),
        ("holds", [("zero", [fmpq(0), fmpq(0)])], fmpq(1)),
        ("fails", [("zero", [fmpq(0), fmpq(2)])], fmpq(1)),
        ("holds", [("zero", BALL)], fmpq(1)),
        ("undecided", [("zero", BALL)], fmpq(1, 2000)),  # a ball that is wider than the control
        ("holds", [("zero", BALL, {"within": fmpq(1, 100)})], fmpq(1, 2000)),
        ("fails", [("zero", arb(1, fmpq(1, 2)))], fmpq(1)),
        ("undecided", [("zero", arb("nan"))], fmpq(1)),
        ("undecided", [("zero", arb(0))], arb("nan")),
        ("holds", [("zero", Sample(0.001, 0.001))], Sample(1.0, 0.001)),
        ("fails", [("zero", Sample(0.1, 0.001))], Sample(1.0, 0.001)),
        ("undecided", [("zero", Sample(0.1, 0.2))], Sample(0.5, 0.001)),
        ("undecided", [("zero", Sample(math.nan, 0.1))], Sample(1.0, 0.001)),
        ("undecided", [("zero", Sample(0.0, math.inf))], Sample(1.0, 0.001)),
        ("holds", [("positive", fmpq(1))], fmpq(-1)),
        ("fails", [("positive", fmpq(0))], fmpq(-1)),
        ("undecided", [("positive", fmpq(1))], fmpq(2)),  # a wrong one that is positive, too, shows nothing
        ("undecided", [("positive", BALL)], fmpq(-1)),
        ("fails", [("positive", [fmpq(1), fmpq(-1)])], fmpq(0)),
        ("holds", [("below", fmpq(1, 3), fmpq(1, 2))], fmpq(1)),
        ("fails", [("below", fmpq(1, 2), fmpq(1, 2))], fmpq(1)),
        ("holds", [("above", Sample(2.0, 0.1), 1)], fmpq(-1)),
        ("undecided", [("above", Sample(1.2, 0.1), 1)], fmpq(-1)),
        ("holds", [("true", True)], fmpq(1)),
        ("fails", [("true", False)], fmpq(1)),
        ("undecided", [("true", None)], fmpq(1)),
    ],
)
def test_what_decides(verdict, calls, control):
    m = measured(*calls, control=control)
    assert m.verdict == verdict
    assert bool(m.reasons) == (verdict == "undecided")


@pytest.mark.parametrize("value", [1.0, math.nan, True, "0", None])
@pytest.mark.parametrize("name", ["zero", "positive", "number", "equal"])
def test_what_is_no_number_is_refused(name, value):
    with pytest.raises(TypeError, match="not a rational, a ball or a sample"):
        measured((name, value), control=None)


def test_an_empty_list_and_a_second_number_of_one_name_are_refused():
    with pytest.raises(ValueError, match="nothing was measured"):
        measured(("zero", []))
    with pytest.raises(ValueError, match="two numbers"):
        measured(("number", 1), ("number", 2), control=None)
    with pytest.raises(ValueError, match="after the requirement"):
        Measured().control("a wrong one", 1, of="x")
    assert Measured().verdict == "undecided" and Measured().reasons == ["no control"]


@pytest.mark.parametrize(("wants", "value", "rejected"), [("positive", -1, False), ("negative", -1, True)])
def test_a_control_has_a_direction(wants, value, rejected):
    m = measured(("zero", fmpq(0)), control=None)
    m.control("an error that is smaller", fmpq(value), of="x", wants=wants)
    assert m.controls[0].rejected is rejected and m.verdict == ("holds" if rejected else "undecided")


def test_what_is_undecided_by_hand_does_not_hold():
    m = measured(("zero", fmpq(0)))
    m.undecided("it was not compared with all")
    assert m.verdict == "undecided" and m.document()["notes"] == ["undecided: it was not compared with all."]

    def ends(m):
        m.number("x", fmpq(1), "one")
        raise Undecided("nothing was found")

    assert decided(ends).reasons == ["nothing was found"] and "x" in decided(ends).numbers


def test_bits_are_doubled_until_a_ball_decides():
    def measure(m):
        if m.bits < 128:
            raise Blurred
        third = arb(1) / 3
        m.positive("x", third + fmpq(1, 2**300) - third, "a small difference")
        m.control("none", fmpq(0), of="x")

    assert (decided(measure).verdict, decided(measure).bits) == ("holds", 512)
    low = decided(measure, most_bits=256)
    assert low.verdict == "undecided" and "at 256 bits" in low.reasons[0]
    blurred = decided(measure, most_bits=64)
    assert blurred.verdict == "undecided" and "lost its digits" in blurred.reasons[0]
    assert decided(lambda m: m.true("x", None, "no proof")).bits == 64  # bits do not help


def test_a_document_has_rationals_radii_and_standard_errors():
    m = measured(("zero", fmpq(0)))
    m.number("some", [fmpq(1, 3), 2], "some numbers")
    m.number("long", fmpq(1, 10**500), "one that is too long")
    m.number("huge", fmpq(10**400), "one beyond floats")
    m.number("pi", arb.pi(), "a ball")
    m.number("drawn", Sample(1.0, 0.5), "a sample")
    m.number("best", fmpq(1), "the best found", searched=True)
    found = m.document()
    assert found["measured"]["some"] == [1 / 3, 2] and found["exact"]["some"] == ["1/3", "2"]
    assert "long" not in found["exact"] and found["measured"]["huge"] == math.inf
    assert found["kinds"] == {
        "x": "exact", "some": "exact", "long": "exact", "huge": "exact", "pi": "ball", "drawn": "sampled",
        "best": "searched",
    }  # fmt: skip
    assert 0 < found["radii"]["pi"] < 1e-15 and found["measured"]["drawn_stderr"] == 0.5
    assert found["control"]["rejected"] and found["bits"] == 64


@pytest.mark.parametrize(
    ("value", "letters"),
    [
        (fmpq(15, 13), "15/13"),
        (fmpq(1, 3**60), "2.35898249e-29"),
        (Sample(0.5, 0.01), "0.5 ± 0.01"),
        ([1, 2], "[1, 2]"),
    ],
)
def test_a_number_as_text(value, letters):
    assert text(value)[: len(letters)] == letters


@dataclass
class Small(Statement):
    dim: int = setting(2, 1, 5, most=9, beyond="it is slow")
    scale: float = setting(0.5, 0.0, 2.0)
    kind: str = setting("a", choices=("a", "b"))

    def measure(self, m: Measured) -> None:
        m.number("dim", self.dim, "dimension")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"dim": 0}, "check.dim=0"), ({"dim": 10}, "check.dim=10: at most 9; beyond, it is slow"),
        ({"dim": 1.5}, "check.dim=1.5"), ({"dim": True}, "check.dim=True"), ({"scale": -1.0}, "check.scale"),
        ({"scale": math.nan}, "check.scale"), ({"kind": "c"}, "check.kind=c"),
    ],
)  # fmt: skip
def test_a_setting_outside_its_range_is_refused(given, told):
    with pytest.raises(InputError, match=told):
        Small(**given)
    assert Small(dim=7.0).dim == 7


@pytest.mark.parametrize(
    ("verdict", "d", "call"),
    [
        ("holds", 3, ("equal", fmpq(6), "d*(d + 1)/2")),
        ("fails", 3, ("equal", fmpq(7), "d*(d + 1)/2")),
        ("undecided", 0, ("equal", fmpq(0), "d*0")),  # no formula beside it differs at d = 0
        ("undecided", 3, ("equal", fmpq(6), 6)),  # a number brings no control
        ("holds", 3, ("at_most", fmpq(6), "d*(d + 1)/2")),
        ("undecided", 3, ("at_most", fmpq(1), "d*(d + 1)/2")),  # the bounds beside it hold, too
        ("fails", 3, ("at_most", fmpq(7), "d*(d + 1)/2")),
        ("holds", 3, ("equal", arb(3).sqrt(), "sqrt(d)")),
        ("holds", 3, ("agrees", (6.01, 0.01), "d*(d + 1)/2")),
        ("fails", 3, ("agrees", (6.1, 0.01), "d*(d + 1)/2")),
        ("undecided", 3, ("agrees", (6.1, 9.0), "d*(d + 1)/2")),
        ("holds", 3, ("rate", lambda n: fmpq(3, n + 1), -1)),
        ("fails", 3, ("rate", lambda n: fmpq(3, n + 1), -2)),
        ("fails", 3, ("rate", lambda n: arb(n).sqrt(), 1)),
    ],
)
def test_formulas_are_compared_and_are_their_own_control(verdict, d, call):
    name, *given = call
    found = decided(lambda m: getattr(m, name)("x", *given), settings={"d": d})
    assert found.verdict == verdict
    if name == "equal" and isinstance(given[1], str) and d == 3:
        assert "changes are seen to be wrong" in found.controls[0].about and found.controls[0].rejected
