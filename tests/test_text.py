"""Tests of numbers and verdicts as text, as they are shown everywhere."""

from typing import Any

import pytest

from icl.text import brief, inequality, kind_in_words, measurement, numbers, relation
from icl.verdict_sentences import control_sentence, verdict_sentence


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.13360842938, "0.1336"), (0.0, "0"), (2.1137e-16, "2.114e-16"), (-1.25e-5, "-1.25e-05"),
        (689268.9, "6.893e+05"), (1.5e12, "1.5e+12"), (41, "41"), (-3, "-3"),
        (200000, "200000"), (98.197, "98.2"),
    ],
)  # fmt: skip
def test_numbers(value: float, text: str) -> None:
    assert brief(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"), (True, "true"), ("L=1 is 3", "L=1 is 3"), ([1.0, [2, None]], "[1, [2, -]]"),
        ({"a": 1, "b": {"c": 0.5}}, "a: 1; b: (c: 0.5)"), ([], "[]"), ({}, ""),
        ([*range(8)], "[0, 1, 2, 3, 4, 5, 6, 7]"), ([*range(1000)], "[0, 1, 2, 3, 4, 5, 6, 7, … (1000)]"),
        ({str(i): 1 for i in range(99)}, "0: 1; 1: 1; 2: 1; 3: 1; 4: 1; 5: 1; 6: 1; 7: 1; … (99)"),
    ],
)  # fmt: skip
def test_anything_has_one_line(value: Any, text: str) -> None:
    assert brief(value) == text


MEASURED: dict[str, Any] = {"risk": 0.25, "gradient_norm": 3e-15, "distance": 0.297, "steps": [1.0]}
MEASURED["proved"] = True


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
        (bound(None, "proved", "true"), "proved true"),
        (bound(0.5), "risk 0.25 < 0.5"),  # of nothing named: the first that was measured
    ],
)
def test_what_the_bound_is_of_and_how_it_compares(against: dict[str, Any], text: str) -> None:
    assert inequality(relation(MEASURED, against)) == text


def test_a_number_says_what_kind_it_is() -> None:
    measured = {"risk": 0.25, "risk_stderr": 0.02, "gap": 0.0, "gap_stderr": 0.0, "starts": 8, "best": [1.0]}
    kinds = {"risk": "sampled", "gap": "exact", "best": "searched"}
    told = {"measured": measured, "kinds": kinds}
    words = [kind_in_words(told, name) for name in ("risk", "gap", "best", "starts")]
    assert words == ["sampled, ± 0.02", "exact", "found by search", ""]
    assert kind_in_words({"measured": measured}, "risk") == "", "a record from before"
    assert measurement(told | {"bound": bound(0.3, "risk")}) == "risk 0.25 < 0.3 (sampled, ± 0.02)"


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
        ("z", "0.5 < 3.5", "sampled, ± 0.1", "deviation", ()),
        ("rows", "", "", "", (("a", "[1]"),)),
    ]
