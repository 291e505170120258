"""From documents to statements, counts and remarks."""

from __future__ import annotations

from dataclasses import replace

from icl.report.book import Entry
from icl.report.statements import counted, statements
from tests.report.conftest import NOTES, REMARKS, Make, book, check, waiting


def test_one_statement_for_a_check_and_one_for_each_claim(figure: Make) -> None:
    found = statements(book(check(), figure(), waiting()))
    assert [s.verdict for s in found] == ["holds", "holds", "fails", ""]
    assert len({s.anchor for s in found}) == 4
    assert [s.kind for s in found] == ["holds", "holds", "fails", "open"]
    of_check, claim = found[0], found[2]
    assert of_check.headline == ("2.10 × 10⁻¹⁶", "gradient_norm") and of_check.bound_text == "< 1.0 × 10⁻¹²"
    assert of_check.control is not None and of_check.control.rejected
    assert claim.source == "below .01" and claim.bound is None and claim.pairs == [("", "0.1336")]


def test_long_values_leave_room_for_short_ones(figure: Make) -> None:
    long = {str(seed): [0.12345, 0.54321] for seed in range(5)}
    (claim,) = statements(book(figure(claims=[{"claim": "c", "measured": {"mean": 0.5, "by seed": long}}])))
    assert claim.short_pairs == [("mean", "0.5")] and len(claim.pairs) == 2
    (claim,) = statements(book(figure(claims=[{"claim": "c", "measured": {"by seed": long, "mean": 0.5}}])))
    assert claim.short_pairs == claim.pairs, "the first is what the bound is of"


def test_counts(figure: Make) -> None:
    entries = [
        check(), check("one/b", "undecided"), check("one/c", "fails", expected="holds"), figure(), waiting(),
        waiting(id="one/d", state="failed", reason="no"),
        waiting(id="one/e", state="skipped", reason="no model"), waiting(id="one/f", state="running"),
    ]  # fmt: skip
    counts = counted(statements(book(*entries)), entries)
    assert (counts.holds, counts.fails, counts.undecided, counts.statements) == (2, 2, 1, 5)
    assert (counts.unexpected, counts.waiting, counts.failed, counts.skipped) == (1, 2, 1, 1)
    assert (counts.done, counts.entries) == (5, 8)


def test_remarks_are_those_of_the_document_and_notes_the_others() -> None:
    (statement,) = statements(book(check()))
    assert (statement.remarks, statement.notes) == (REMARKS, NOTES)
    both = statements(book(check(remarks=[]), check(notes=REMARKS)))
    assert [(s.remarks, s.notes) for s in both] == [([], [*REMARKS, *NOTES]), (REMARKS, [])]


def test_claims_of_figures_have_remarks_too(figure: Make) -> None:
    claim = {"claim": "c", "verdict": "holds", "measured": 1.0, "bound": "b", "remarks": ["Printed wrong."]}
    (statement,) = statements(book(figure(claims=[claim, claim | {"remarks": []}])))[:1]
    assert statement.remarks == ["Printed wrong."] and statement.notes == []


def test_a_source_is_shortened_at_its_first_comma_or_its_sixtieth_letter() -> None:
    (statement,) = statements(book(check()))
    assert statement.short_source == "rounding"
    (statement,) = statements(book(check(bound={"value": None, "source": "word " * 40})))
    assert len(statement.short_source) <= 62 and statement.short_source.endswith("…")
    assert statement.bound_text == ""


def test_a_document_that_lacks_things_is_shown_with_what_it_has(figure: Make) -> None:
    bare = Entry("check", "x/y", "x", "", "", "done", {"verdict": "holds"})
    (statement,) = statements(book(bare))
    assert (statement.claim, statement.control, statement.headline) == ("", None, ("–", ""))
    assert (statement.remarks, statement.notes) == ([], [])
    older = check()
    document = {key: value for key, value in (older.document or {}).items() if key != "remarks"}
    (statement,) = statements(book(replace(older, document=document)))
    assert (statement.remarks, statement.notes) == ([], [*REMARKS, *NOTES])
    (claim,) = statements(book(figure(claims=[{"claim": "c", "bound": 0.5}])))
    assert claim.bound_text == "0.5" and claim.pairs == [("", "–")]
