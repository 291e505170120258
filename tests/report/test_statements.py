"""Tests of statements, counts and remarks made from documents."""

from dataclasses import replace

from icl.report.content import ReportEntry
from icl.report.statements import count, first_sentence, statements
from tests.report.conftest import NOTES, REMARKS, Make, check, content, waiting


def test_one_statement_for_a_check_and_one_for_each_claim(figure: Make) -> None:
    found = statements(content(check(), figure(), waiting()))
    assert [s.verdict for s in found] == ["holds", "holds", "fails", ""]
    assert len({s.anchor for s in found}) == 4
    assert [s.kind for s in found] == ["holds", "holds", "fails", "open"]
    of_check, claim = found[0], found[2]
    assert of_check.inequality == "gradient norm 2.10 × 10⁻¹⁶ < 1.00 × 10⁻¹²"
    assert of_check.control is not None and of_check.control.rejected
    assert (
        claim.source == "below .01"
        and claim.bound is None
        and [(n.name, n.value) for n in claim.numbers] == [("", "0.1336")]
    )


def test_a_number_says_what_kind_it_is(figure: Make) -> None:
    (statement,) = statements(content(check()))
    assert (statement.kind_in_words, statement.kinds["risk"]) == ("exact", "sampled")
    measured = {"gradient_norm": 0.1, "gradient_norm_stderr": 0.02}
    (sampled,) = statements(content(check(measured=measured, kinds={"gradient_norm": "sampled"})))
    assert sampled.kind_in_words == "sampled, ± 0.02"
    (number,) = sampled.numbers
    assert (number.name, number.kind) == ("gradient_norm", "sampled, ± 0.02"), "its error is part of it"
    assert number.value.startswith("0.1 > 1e-12"), "and so is its bound"
    claim = {"claim": "c", "verdict": "holds", "measured": 1.0, "bound": "b", "kind": "searched"}
    assert [s.kind_in_words for s in statements(content(figure(claims=[claim])))] == ["found by search"]


def test_counts(figure: Make) -> None:
    entries = [
        check(), check("one/b", "undecided"), check("one/c", "fails", expected="holds"), figure(), waiting(),
        waiting(id="one/d", state="failed", reason="no"),
        waiting(id="one/e", state="skipped", reason="no model"), waiting(id="one/f", state="running"),
    ]  # fmt: skip
    counts = count(statements(content(*entries)), entries)
    assert (counts.holds, counts.fails, counts.undecided, counts.statements) == (2, 2, 1, 5)
    assert (counts.unexpected, counts.waiting, counts.failed, counts.skipped) == (1, 2, 1, 1)
    assert (counts.done, counts.entries) == (5, 8)


def test_remarks_are_those_of_the_document_and_notes_the_others(figure: Make) -> None:
    (statement,) = statements(content(check()))
    assert (statement.remarks, statement.notes) == (REMARKS, NOTES)
    both = statements(content(check(remarks=[]), check(notes=REMARKS)))
    assert [(s.remarks, s.notes) for s in both] == [([], [*REMARKS, *NOTES]), (REMARKS, [])]
    claim = {"claim": "c", "verdict": "holds", "measured": 1.0, "bound": "b", "remarks": ["Printed wrong."]}
    of_claims = statements(content(figure(claims=[claim, claim | {"remarks": []}])))
    assert [(s.remarks, s.notes) for s in of_claims] == [(["Printed wrong."], []), ([], [])]


def test_an_inequality_has_as_many_digits_as_tell_its_sides_apart() -> None:
    def told(value: float, bound: float, direction: str = "<") -> str:
        told = {"value": bound, "source": "s", "of": "x_y", "direction": direction}
        return statements(content(check(measured={"x_y": value}, bound=told)))[0].inequality

    assert told(53.970855738, 54.0) == "x y 53.97 < 54"
    assert told(0.9999999997652, 1.000000000003) == "x y 0.9999999997652 < 1.000000000003"
    assert told(0.5, 0.5, ">") == "x y 0.5 ≥ 0.5"


def test_the_heading_and_the_panels_of_a_statement(figure: Make) -> None:
    def headed(**changes: str) -> tuple[str, str]:
        (found,) = statements(content(replace(check("one/gd"), **changes)))
        return found.title, found.short_title

    assert headed(title="Theorem 1: a layer") == ("Theorem 1: a layer", "Theorem 1")
    assert headed(title="one/gd", reference="Section 5") == ("Section 5", "Section 5")
    assert headed(title="", reference="") == ("one/gd", "one/gd")


def test_a_document_may_say_itself_in_sentences_and_name_its_numbers(figure: Make) -> None:
    entry = check()
    told = {"sentence": "It holds.", "control_sentence": "It is rejected.", "meanings": {"risk": "the risk"}}
    (found,) = statements(content(replace(entry, document={**(entry.document or {}), **told})))
    assert (found.sentence, found.control_sentence) == (told["sentence"], told["control_sentence"])
    assert {n.name: n.meaning for n in found.numbers}["risk"] == "the risk"


def test_what_would_decide_a_statement_is_told_only_where_it_is_undecided(figure: Make) -> None:
    hints = ["A matter of budget: icl figure figure=one/fig1 scale=paper decides.", "undecided: too short."]
    for verdict in ("holds", "fails", "undecided"):
        kept = hints if verdict == "undecided" else []
        (of_check,) = statements(content(check(verdict=verdict, remarks=hints, notes=[])))
        claim = {
            "claim": "c",
            "verdict": verdict,
            "remarks": hints,
            "notes": [*hints, "Two undecided points."],
        }
        (of_claim,) = statements(content(figure(claims=[claim])))
        assert of_check.remarks == of_claim.remarks == kept
        assert of_claim.notes == [*kept, "Two undecided points."]


def test_a_statement_is_the_projects_own_by_its_config_or_its_claim(figure: Make) -> None:
    entries = [check(), replace(check(), origin="icl"), replace(figure(), origin="icl")]
    assert [s.is_own for s in statements(content(*entries))] == [False, True, True, True]
    assert [s.is_own for s in statements(content(figure(claims=[{"claim": "c", "whose": "project"}])))] == [
        True
    ]


def test_theorems_rank_before_lemmas_and_these_before_what_a_figure_shows(figure: Make) -> None:
    refs = ("Section 6", "Lemma 1", "Theorem 2", "Corollary 3", "Proposition 4")
    found = statements(content(figure(), *(replace(check(), reference=reference) for reference in refs)))
    order = [s.entry.reference for s in sorted(found, key=lambda s: s.rank)]
    assert order == ["Theorem 2", "Proposition 4", "Corollary 3", "Lemma 1", "Section 6", *["Figure 1"] * 2]


def test_a_document_that_lacks_things_is_shown_with_what_it_has(figure: Make) -> None:
    bare = ReportEntry("check", "x/y", "x", "", "", "done", {"verdict": "holds"})
    (statement,) = statements(content(bare))
    assert (statement.claim, statement.control, statement.inequality) == ("", None, "–")
    assert (statement.remarks, statement.notes) == ([], [])
    older = check()
    document = {key: value for key, value in (older.document or {}).items() if key != "remarks"}
    (statement,) = statements(content(replace(older, document=document)))
    assert (statement.remarks, statement.notes) == ([], [*REMARKS, *NOTES])
    (claim,) = statements(content(figure(claims=[{"claim": "c", "bound": 0.5}])))
    assert claim.bound_text == "0.5" and [(n.name, n.value) for n in claim.numbers] == [("", "–")]


def test_a_sentence_does_not_end_at_the_number_of_an_equation() -> None:
    assert first_sentence("It is that of eq. (6). So it is one.") == "It is that of eq. (6)."
