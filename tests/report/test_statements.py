"""Tests of statements, counts and remarks made from documents."""

from dataclasses import replace

from icl.report.content import ReportEntry
from icl.report.statements import count, statements
from tests.report.conftest import NOTES, REMARKS, Make, check, content, waiting


def test_one_statement_for_a_check_and_one_for_each_claim(figure: Make) -> None:
    found = statements(content(check(), figure(), waiting()))
    assert [s.verdict for s in found] == ["holds", "holds", "fails", ""]
    assert len({s.anchor for s in found}) == 4
    assert [s.kind for s in found] == ["holds", "holds", "fails", "open"]
    of_check, claim = found[0], found[2]
    assert of_check.inequality == "gradient norm 2.10 × 10⁻¹⁶ < 1.00 × 10⁻¹²"
    assert of_check.control is not None and of_check.control.rejected
    assert claim.source == "below .01" and claim.bound is None and claim.pairs == [("", "0.1336")]


def test_a_number_says_what_kind_it_is(figure: Make) -> None:
    (statement,) = statements(content(check()))
    assert (statement.kind_in_words, statement.kinds["risk"]) == ("exact", "sampled")
    measured = {"gradient_norm": 0.1, "gradient_norm_stderr": 0.02}
    (sampled,) = statements(content(check(measured=measured, kinds={"gradient_norm": "sampled"})))
    assert sampled.kind_in_words == "sampled, ± 0.02"
    claim = {"claim": "c", "verdict": "holds", "measured": 1.0, "bound": "b", "kind": "searched"}
    assert [s.kind_in_words for s in statements(content(figure(claims=[claim])))] == ["found by search"]


def test_long_values_leave_room_for_short_ones(figure: Make) -> None:
    long = {str(seed): [0.12345, 0.54321] for seed in range(5)}
    (claim,) = statements(
        content(figure(claims=[{"claim": "c", "measured": {"mean": 0.5, "by seed": long}}]))
    )
    assert claim.short_pairs == [("mean", "0.5")] and len(claim.pairs) == 2
    (claim,) = statements(
        content(figure(claims=[{"claim": "c", "measured": {"by seed": long, "mean": 0.5}}]))
    )
    assert claim.short_pairs == claim.pairs, "the first is what the bound is of"


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


def test_names_a_reader_knows_it_by_and_panels_it_speaks_of(figure: Make) -> None:
    def named(reference: str) -> str:
        return statements(content(replace(check("one/gd_plus_plus"), reference=reference)))[0].short_reference

    assert (named("Lemmas 5 and 6"), named("Theorem 5.1; C.1")) == ("Lemma 5", "Theorem 5.1")
    assert named("Section 5, eq. (11)") == "gd plus plus"
    claims = [{"claim": f"{start} falls"} for start in ("(a)-(c) it", "(b) it", "(a) and (d) it", "it")]
    found = statements(content(figure(claims=claims, reference="Appendix D, Figure 7")))
    assert [s.panels for s in found] == [("a", "b", "c"), ("b",), ("a", "d"), ()]
    assert found[0].short_reference == "Figure 7"


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
    assert claim.bound_text == "0.5" and claim.pairs == [("", "–")]
