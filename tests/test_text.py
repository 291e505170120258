"""Tests of numbers and verdicts as text, as they are shown everywhere."""

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icl.text import (
    brief,
    control_sentence,
    csv_text,
    inequality,
    kind_in_words,
    main_route,
    measurement,
    named_values,
    numbers,
    outcome,
    relation,
    second_route,
    short_source,
    typeset,
    typeset_inequality,
    verdict_sentence,
)
from icl.verdicts import kinds_of

_BACK = str.maketrans("−⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "--0123456789")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.13360842938, "0.1336"), (0.0, "0"), (2.1137e-16, "2.11 × 10⁻¹⁶"), (-1.25e-5, "−1.25 × 10⁻⁵"),
        (689268.9, "689269"), (1.5e12, "1.50 × 10¹²"), (41, "41"), (-3, "−3"),
        (200000, "200000"), (98.197, "98.2"),
    ],
)  # fmt: skip
def test_numbers(value: float, text: str) -> None:
    assert typeset(value) == text


@settings(deadline=None)
@given(st.floats(-1e300, 1e300))
def test_a_number_reads_back_to_three_digits(value: float) -> None:
    """Compare with Python's own reading of what is shown."""
    shown = float(typeset(value).replace(" × 10", "e").translate(_BACK))
    assert math.isclose(shown, value, rel_tol=5.1e-3)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"), (True, "true"), ("L=1 is 3", "L=1 is 3"), ([1.0, [2, None]], "[1, [2, –]]"),
        ({"a": 1, "b": {"c": 0.5}}, "a: 1; b: (c: 0.5)"), ([], "[]"), ({}, ""),
        ([*range(8)], "[0, 1, 2, 3, 4, 5, 6, 7]"), ([*range(1000)], "[0, 1, 2, 3, 4, 5, 6, 7, … (1000)]"),
        ({str(i): 1 for i in range(99)}, "0: 1; 1: 1; 2: 1; 3: 1; 4: 1; 5: 1; 6: 1; 7: 1; … (99)"),
    ],
)  # fmt: skip
def test_anything_has_one_line(value: Any, text: str) -> None:
    assert typeset(value) == text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=12) | st.dictionaries(st.text(), inner, max_size=12),
    max_leaves=20,
)


@settings(deadline=None, max_examples=40)
@given(JSON)
def test_no_json_value_is_refused(value: Any) -> None:
    assert isinstance(brief(value), str) and isinstance(typeset(value), str)
    told = named_values(json.loads(json.dumps(value)))
    assert all(isinstance(name, str) and isinstance(text, str) for name, text in told)


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
    assert inequality(relation(MEASURED, against)) == text


def test_nothing_measured() -> None:
    assert relation({}, bound(1.0)) == ("", None, "<", 1.0)
    assert relation({"risk": None}, bound(1.0, "risk")).value is None  # NaN is null in a document


def test_a_number_says_what_kind_it_is() -> None:
    measured = {"risk": 0.25, "risk_stderr": 0.02, "gap": 0.0, "gap_stderr": 0.0, "starts": 8, "best": [1.0]}
    kinds = kinds_of(measured, dict.fromkeys(measured, "exact") | {"best": "searched"})
    assert kinds == {"risk": "sampled", "gap": "exact", "best": "searched"}, "an error is not to be overruled"
    assert kinds_of(measured, {"starts": "exact"}, decides="starts")["starts"] == "exact"
    assert kinds_of(measured, {}) == {"risk": "sampled"}, "what says nothing is not called exact"
    told = {"measured": measured, "kinds": kinds}
    words = [kind_in_words(told, name) for name in ("risk", "gap", "best", "starts")]
    assert words == ["sampled, ± 0.02", "exact", "found by search", ""]
    assert kind_in_words({"measured": measured}, "risk") == "", "a record from before"
    assert measurement(told | {"bound": bound(0.3, "risk")}) == "risk 0.25 < 0.3 (sampled, ± 0.02)"


@pytest.mark.parametrize("digits", [3, 5, 11])
def test_two_sides_that_differ_differ_in_text(digits: int) -> None:
    limit = 54 + 10.0**-digits
    for text in (inequality, typeset_inequality):
        left, sign, right = (
            text(relation({"risk": 54.0}, bound(limit, "risk"))).removeprefix("risk ").split(" ")
        )
        assert sign == "<" and float(left) < float(right)


def test_a_page_has_words_for_names() -> None:
    assert typeset_inequality(relation(MEASURED, bound(2e-13, "gradient_norm"))) == (
        "gradient norm 3.00 × 10⁻¹⁵ < 2.00 × 10⁻¹³"
    )


def test_plain_text() -> None:
    assert brief({"a": {"b": 0.123456}, "c": [1, 2.5], "d": None}) == "a: (b: 0.1235); c: [1, 2.5]; d: -"
    assert brief(-2.1137e-16, 3) == "-2.11e-16"


@pytest.mark.parametrize(
    ("verdict", "expected", "text"),
    [
        ("holds", "holds", "holds"), ("fails", "fails", "fails (known false)"),
        ("fails", "holds", "fails (expected: holds)"), ("undecided", "undecided", "undecided"),
        ("undecided", "holds", "undecided (expected: holds)"),
    ],
)  # fmt: skip
def test_an_undecided_outcome_is_never_a_success(verdict: str, expected: str, text: str) -> None:
    assert outcome({"verdict": verdict, "expected": expected}) == text


def verdict(**changes: Any) -> dict[str, Any]:
    return {
        "check": "ahn/theorem1", "paper": "ahn", "title": "Theorem 1: the best single layer", "origin": "ahn",
        "verdict": "holds", "expected": "holds", "settings": {"dim": 8, "context": 3, "seed": 1},
        "measured": MEASURED | {"error": 1.0, "error_stderr": 0.25}, "kinds": {"gradient_norm": "exact"},
        "meanings": {"gradient_norm": "gradient of the exact risk at eq. (6)"}, "inputs": [], "notes": [],
        "bound": bound(2e-13, "gradient_norm"),
        "control": {"description": "another step", "measured": 0.25, "rejected": True},
    } | changes  # fmt: skip


FILE = {"key": "check.covariance", "path": "/a/sigma.npy", "sha256": "1a2b3c4d5e", "shape": [8, 8]}
OF_RUN = {"key": "check.weights", "path": "/o/runs/ahn/fig1/9f/weights.npz", "sha256": "1a2b3c4d5e"}
MEASURED_THERE = "the gradient of the exact risk at eq. (6) is 3e-15 (exact), below 2e-13 (rounding of risk)."


@pytest.mark.parametrize(
    ("document", "changed", "text"),
    [
        (verdict(), (), f"Theorem 1 holds at d = 8, n = 3: {MEASURED_THERE}"),
        (
            verdict(settings={"dim": 8, "context": 3, "covariance": "sigma.npy", "seed": 2}, inputs=[FILE]),
            ("covariance", "seed"),
            "Theorem 1 holds at d = 8, n = 3, Sigma from sigma.npy (8 x 8, sha256 1a2b3c4d), seed = 2: "
            + MEASURED_THERE,
        ),
        (
            verdict(paper="xie", settings={"context": 3, "prior_mean": [1, 2], "dim": 2}),
            ("prior_mean",),
            f"Theorem 1 holds at d = 2, C = 3, w* = [1, 2]: {MEASURED_THERE}",
        ),
        (
            verdict(title="Lemmas 5 and 6: a form", verdict="fails", expected="fails", settings={}),
            (),
            f"Lemmas 5 and 6 are false: {MEASURED_THERE}",
        ),
        (
            verdict(title="Section 5.1: a claim", verdict="fails", settings={"contexts": [1, 10, 100]}),
            (),
            f"The statement of section 5.1 fails at n from 1 to 100: {MEASURED_THERE}",
        ),
        (
            verdict(verdict="undecided", settings={}, notes=["by words", "undecided: too few; scale=paper."]),
            (),
            f"Theorem 1 is undecided: {MEASURED_THERE.removesuffix('.')}; too few; scale=paper.",
        ),
        (
            verdict(origin="icl", settings={}, bound=bound(0.5, "error"), kinds={"error": "sampled"}),
            (),
            "This project's statement ahn/theorem1 holds: the error is 1 (sampled, ± 0.25), above 0.5 "
            "(rounding of risk).",
        ),
        (
            verdict(verdict="undecided", settings={}, meanings={"gradient_norm": "gradient, whitened"}),
            (),
            "Theorem 1 is undecided: the gradient, whitened, is 3e-15 (exact), below 2e-13 (rounding of "
            "risk); "
            "the measurement does not decide it.",
        ),
        (
            verdict(title="mine/good", check="mine/good", settings={}, bound=bound(1e-9, "steps")),
            (),
            "Statement mine/good holds: the steps is [1]; its bound is 1e-09 (rounding of risk).",
        ),
        (
            verdict(settings={"weights": "/o/runs/ahn/fig1/9f", "dim": 5}, inputs=[OF_RUN], law={"dim": 3}),
            ("weights",),
            f"Theorem 1 holds for the weights of ahn/fig1/9f (sha256 1a2b3c4d) at d = 3: {MEASURED_THERE}",
        ),
        (
            verdict(settings={"weights": "this run", "dim": 5, "context": [4, 4]}),
            (),
            f"Theorem 1 holds for the weights of this run at d = 5, n = 4: {MEASURED_THERE}",
        ),
    ],
)
def test_a_verdict_in_a_sentence(document: dict[str, Any], changed: tuple[str, ...], text: str) -> None:
    assert verdict_sentence(document, changed) == text


@pytest.mark.parametrize(
    ("source", "clause"),
    [
        ("rounding: 2^-52", "rounding"),
        ("the claim", "the claim"),
        ("the tolerance of Dist(A, I), all layers", "the tolerance of Dist(A, I)"),
        ("99.9 %; a mean", "99.9 %"),
    ],
)
def test_the_first_clause_of_a_source(source: str, clause: str) -> None:
    assert short_source(source) == clause


def test_a_control_in_a_sentence() -> None:
    document = verdict()
    assert control_sentence(document) == "The control (another step) is rejected at 0.25."
    document["control"] = document["control"] | {"rejected": False}
    assert control_sentence(document) == (
        "The control (another step) is not rejected at 0.25, so that nothing is decided."
    )


def test_numbers_with_their_bounds_and_without_what_has_no_value() -> None:
    document = verdict(
        measured={"z": 0.5, "z_bound": 3.5, "z_stderr": 0.1, "none": None, "empty": [], "rows": {"a": [1]}},
        bound=bound(3.5, "z"),
        bounds={"z": {"value": 3.5, "direction": "<"}},
        kinds={"z": "sampled"},
        meanings={"z": "deviation"},
    )
    assert list(numbers(document)) == [
        ("z", "0.5 < 3.5", "sampled, ± 0.1", "deviation", (), ""),
        ("rows", "", "", "", (("a", "[1]"),), ""),
    ]


def test_csv_has_every_column_and_reads_back() -> None:
    assert csv_text([{"a": 0.1, "b": None}, {"c": "x,y"}]) == 'a,b,c\n0.1,,\n,,"x,y"\n'
    assert csv_text([{"a": 1}], ["b", "a"]) == "b,a\n,1\n"


def route(how: str, name: str = "", **more: Any) -> dict[str, Any]:
    empty = {"value": None, "off": None, "unit": "", "within": None, "agrees": None, "by": ""}
    return {"how": how, "name": name} | empty | more


NEAR = {"off": 2.1e-16, "unit": "relative", "within": 1e-9, "agrees": True}
SAMPLE = {"off": 0.412, "unit": "standard errors", "within": 3.29, "agrees": True}


@pytest.mark.parametrize(
    ("its", "text"),
    [
        (route("computed", "Monte Carlo on tokens", **SAMPLE),
         "second route: Monte Carlo on tokens, 0.41 standard errors off"),
        (route("computed", "quadrature", **NEAR), "second route: quadrature, relative difference 2.1e-16"),
        (route("computed", "quadrature", **NEAR | {"off": 0.5, "agrees": False}),
         "second route: quadrature, relative difference 0.5: they do not agree"),
        (route("compared", "the closed form", by="gap_error", off=0.0, within=2e-13, agrees=True),
         "second route: the closed form, gap error 0 (bound 2e-13)"),
        (route("compared", "Monte Carlo on tokens", **SAMPLE, by="tokens_z"),
         "second route: Monte Carlo on tokens, 0.41 standard errors off"),
        (route("compared", "both", by="risk"), "second route: both (the number is the difference)"),
        (route("tests", "rationals"), "in the tests: rationals"),
        (route("definition"), "by definition"),
        (route("none"), "one route"),
    ],
)  # fmt: skip
def test_a_second_route_in_words(its: dict[str, Any], text: str) -> None:
    shown = verdict(measured={"risk": 1.0, "error": 0.1}, bound=bound(2.0, "risk"), routes={"risk": its})
    assert second_route(shown, "risk") == main_route(shown) == text
    (risk, _) = numbers(shown)
    assert risk.route == text


def test_the_route_that_is_told_is_that_of_the_number_that_decides_or_of_another_exact_one() -> None:
    routes = {"a": route("none"), "risk": route("computed", "quadrature", **NEAR)}
    shown = verdict(
        measured={"z": 1.0}, bound=bound(2.0, "z"), routes=routes, meanings={"risk": "least risk"}
    )
    assert main_route(shown) == "second route of the least risk: quadrature, relative difference 2.1e-16"
    assert main_route(shown | {"bound": bound(2.0, "a")}) == "one route"
    assert main_route(verdict()) == second_route(verdict(), "gradient_norm") == ""  # an older record
