"""Tests of statements, counts and remarks made from documents."""

from typing import Any

import pytest

from icl.report.entries import ReportEntry
from icl.report.statements import Statement, count, sentence, statements
from tests.report.conftest import NOTES, REMARKS, Make, check, waiting

HINTS = ["A matter of budget: icl figure figure=one/fig1 scale=paper decides.", "undecided: too short."]
CONTROL = {"description": "twice A", "measured": 0.315, "exact": "53/168", "rejected": True}
SAMPLED = {
    "measured": {"gradient_norm": 0.1, "gradient_norm_stderr": 0.02},
    "kinds": {"gradient_norm": "sampled"},
}
FALSE = {"verdict": "fails", "expected": "fails"}


def one(**changes: Any) -> Statement:
    (found,) = statements([check(**changes)])
    return found


def tries(**verdicts: int) -> dict[str, Any]:
    found = {"holds": 0, "fails": 0, "undecided": 0, "smallest_counterexample": None, **verdicts}
    return {"decided": sum(verdicts.values()), **found}


def test_one_statement_for_a_check_and_one_for_each_claim(figure: Make) -> None:
    found = statements([check(), figure(), waiting()])
    assert [(s.mark, s.sign) for s in found] == [("holds", "✓"), ("holds", "✓"), ("known-false", "¬")]
    assert len({s.anchor for s in found}) == 3
    assert [(n.name, n.value) for n in found[2].numbers] == [("", "0.1336")]
    assert found[2].bound == "below .01" and found[2].controls == []
    odd = [one(**FALSE | {"expected": "holds"}), one(verdict="undecided"), one(expected="fails")]
    assert [(s.outcome, s.sign, s.as_expected) for s in odd] == [
        ("fails", "✗", False), ("undecided", "?", True), ("holds", "✓", False),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "proof"),
    [
        ({}, ["gradient_norm 2.1e-16 < 1e-12 (exact)", "control 0.5 rejected"]),
        (SAMPLED, ["gradient_norm 0.1 > 1e-12 (sampled, ± 0.02)", "control 0.5 rejected"]),
        ({"bound": {"value": 0, "of": "risk", "direction": "="}, "exact": {"risk": "1/4"}},
         ["risk 1/4 (sampled)", "control 0.5 rejected"]),
        ({"tries": tries(holds=20), "control": CONTROL},
         ["gradient_norm 2.1e-16 < 1e-12 (exact)", "holds at 20 of 20 random settings",
          "control 53/168 rejected"]),
        ({"tries": tries(holds=3, undecided=2), "control": CONTROL | {"rejected": False, "exact": "1" * 18}},
         ["gradient_norm 2.1e-16 < 1e-12 (exact)", "holds at 3, undecided at 2 of 5 random settings",
          "control 0.315 not rejected"]),
        ({"measured": None, "control": None, "tries": tries(holds=1, fails=4)},
         ["holds at 1, fails at 4 (as expected) of 5 random settings"]),
        ({"measured": None, "control": None, "tries": tries(fails=5) | {"smallest_counterexample": {"d": 1}}},
         ["fails at 5 of 5 random settings"]),
        ({"measured": None, "control": None}, []),
    ],
)  # fmt: skip
def test_what_a_verdict_rests_on_is_said_in_a_few_words(changes: dict[str, Any], proof: list[str]) -> None:
    assert one(**changes).proof == proof


def test_every_control_is_there_and_a_number_has_its_kind_and_its_meaning(figure: Make) -> None:
    both = one(controls=[CONTROL, CONTROL | {"exact": None}])
    assert both.controls == [("twice A", "53/168", True), ("twice A", "0.315", True)]
    told = [(n.name, n.kind, n.meaning) for n in one(meanings={"risk": "the risk"}).numbers[:2]]
    assert told == [("gradient_norm", "exact", ""), ("risk", "sampled", "the risk")]
    claim = {"claim": "c", "verdict": "holds", "measured": 1.0, "bound": "b", "kind": "searched"}
    (found,) = statements([figure(claims=[claim])])
    assert [n.kind for n in found.numbers] == ["found by search"]


def test_counts_and_their_sentence(figure: Make) -> None:
    entries = [
        check(), check("one/b", "undecided"), check("one/c", "fails", expected="holds"), figure(), waiting(),
        waiting(id="one/d", state="failed", reason="no"), waiting(id="one/e", state="skipped", reason="no"),
    ]  # fmt: skip
    found = statements(entries)
    others = ("known false", "fails", "undecided", "waiting", "failed", "skipped")
    assert count(found, entries) == {"holds": 2, **dict.fromkeys(others, 1)}
    assert sentence(found) == "2 hold, 1 known false, 1 undecided, 1 other than expected."
    assert sentence(found[:1]) == "1 holds." and sentence([]) == ""


@pytest.mark.parametrize(
    ("told", "remarks", "notes"),
    [
        ({"remarks": REMARKS, "notes": [*REMARKS, *NOTES]}, REMARKS, NOTES),
        ({"remarks": [], "notes": [*REMARKS, *NOTES]}, [], [*REMARKS, *NOTES]),
        ({"remarks": REMARKS, "notes": REMARKS}, REMARKS, []),
        ({"remarks": HINTS, "notes": [*HINTS, "Two undecided points."]}, [], ["Two undecided points."]),
        ({"verdict": "fails", "remarks": [], "notes": HINTS}, [], []),
        ({"verdict": "undecided", "remarks": HINTS, "notes": [*HINTS, "Two."]}, HINTS, ["Two."]),
    ],
)
def test_remarks_are_those_of_the_document_and_what_would_decide_is_told_where_it_is_open(
    told: dict[str, Any], remarks: list[str], notes: list[str], figure: Make
) -> None:
    claim = {"claim": "c", "verdict": "holds", **told}
    for found in (one(**told), *statements([figure(claims=[claim])])):
        assert (found.remarks, found.notes) == (remarks, notes)


@pytest.mark.parametrize(
    ("remarks", "reason"),
    [
        (["Two is two. The proof divides by 0."], "Two is two."),
        (["The proof divides by 0.", "It is so. It is false for x > 1."], "It is false for x > 1."),
        (["It is that of eq. (6). So it is one."], "It is that of eq. (6)."),
        ([], ""),
    ],
)
def test_the_reason_of_a_false_one_is_a_sentence_and_none_ends_at_the_number_of_an_equation(
    remarks: list[str], reason: str
) -> None:
    assert one(remarks=remarks, **FALSE).reason == reason


def test_headings_owners_and_ranks(figure: Make) -> None:
    for (title, reference), heading in {
        ("Theorem 1: a", ""): "Theorem 1: a", ("one/gd", "Section 5"): "Section 5", ("", ""): "one/gd",
    }.items():  # fmt: skip
        assert one(id="one/gd", title=title, reference=reference).title == heading
    entries = [check(), check(origin="icl"), figure(origin="icl"), figure(claims=[{"whose": "project"}])]
    assert [s.is_own for s in statements(entries)] == [False, True, True, True, True]
    refs = ("Section 6", "Lemma 1", "Theorem 2", "Corollary 3", "Proposition 4")
    found = sorted(statements(check(reference=reference) for reference in refs), key=lambda s: s.rank)
    order = ["Theorem 2", "Proposition 4", "Corollary 3", "Lemma 1", "Section 6"]
    assert [s.entry.reference for s in found] == order


def test_a_document_that_lacks_things_is_shown_with_what_it_has(figure: Make) -> None:
    (bare,) = statements([ReportEntry("check", "x/y", "x", "", "", "done", {"verdict": "holds"})])
    assert (bare.claim, bare.controls, bare.proof, bare.remarks, bare.notes) == ("", [], [], [], [])
    (claim,) = statements([figure(claims=[{"claim": "c", "bound": 0.5}])])
    assert claim.bound == "0.5" and [(n.name, n.value) for n in claim.numbers] == [("", "-")]
