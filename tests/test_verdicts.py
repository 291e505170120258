"""The inequality a verdict rests on, as it is shown everywhere."""

from typing import Any

import pytest

from icl.verdicts import brief, inequality, kind_in_words, kinds_of, measurement, outcome, relation

MEASURED: dict[str, Any] = {"risk": 0.25, "gradient_norm": 3e-15, "distance": 0.297, "steps": [1.0]}


def bound(value: float | None, of: str = "", direction: str = "<") -> dict[str, Any]:
    return {"value": value, "source": "rounding of risk", "of": of, "direction": direction}


@pytest.mark.parametrize(
    ("against", "text"),
    [
        (bound(2e-13, "gradient_norm"), "gradient_norm 3e-15 < 2e-13"),
        (bound(0.05, "distance"), "distance 0.297 > 0.05"),  # fails, and reads so
        (bound(0.05, "distance", ">"), "distance 0.297 > 0.05"),
        (bound(0.5, "distance", ">"), "distance 0.297 < 0.5"),
        (bound(0.25, "risk"), "risk 0.25 ≤ 0.25"),
        (bound(0.25, "risk", ">"), "risk 0.25 ≥ 0.25"),
        (bound(0.1, "steps"), "steps [1] < 0.1"),  # no number: as it should be
        (bound(None, "risk", ">"), "risk 0.25 > -"),
        (bound(0.5), "risk 0.25 < 0.5"),  # of nothing named: the first that was measured
    ],
)
def test_what_the_bound_is_of_and_how_it_compares(against: dict[str, Any], text: str) -> None:
    assert inequality(MEASURED, against) == text


def test_nothing_measured() -> None:
    assert relation({}, bound(1.0)) == ("", None, "<", 1.0)
    assert relation({"risk": None}, bound(1.0, "risk")).value is None  # NaN is null in a document


def test_a_number_says_what_kind_it_is() -> None:
    measured = {"risk": 0.25, "risk_stderr": 0.02, "gap": 0.0, "gap_stderr": 0.0, "starts": 8, "best": [1.0]}
    kinds = kinds_of(measured, {"*": "exact", "best": "searched"})
    assert kinds == {"risk": "sampled", "gap": "exact", "best": "searched"}, "an error is not to be overruled"
    assert kinds_of(measured, {"*": "exact"}, decides="starts")["starts"] == "exact"
    assert kinds_of(measured, {}) == {"risk": "sampled"}, "what says nothing is not called exact"
    told = {"measured": measured, "kinds": kinds}
    words = [kind_in_words(told, name) for name in ("risk", "gap", "best", "starts")]
    assert words == ["sampled, ± 0.02", "exact", "found by search", ""]
    assert kind_in_words({"measured": measured}, "risk") == "", "a record from before"
    assert measurement(told | {"bound": bound(0.3, "risk")}) == "risk 0.25 < 0.3 (sampled, ± 0.02)"


def test_in_brief() -> None:
    assert brief({"a": {"b": 0.123456}, "c": [1, 2.5]}) == "a (b 0.1235), c [1, 2.5]"
    assert outcome({"verdict": "fails", "expected": "fails"}) == "fails, as expected"
    assert outcome({"verdict": "fails", "expected": "holds"}) == "fails (expected: holds)"
    assert outcome({"verdict": "holds", "expected": "holds"}) == "holds"
