"""Tests of a finding and its document: remarks on the paper's text are apart from other notes."""

import pytest

from icl.checks.verdict import Bound, Control, Finding
from icl.jobs.requests.weight_checks import verdict_document


class Stated:
    reference, claim = "Lemma 0", "One is one."


def finding(rejected=True, verdict="holds", **texts):
    return Finding(
        verdict, {"error": 0.0}, Bound(1.0, "rounding", "error"), Control("two", 2.0, rejected), **texts
    )


def document(found):
    return verdict_document("mylab/lemma0", Stated(), {}, found, "holds", 0.5)


def test_the_document_has_the_remarks_twice_and_notes_that_hold_everything():
    told = document(finding(notes=("by words",), remarks=("a misprint", "not tight")))
    assert told["remarks"] == ["a misprint", "not tight"]
    assert told["notes"] == ["a misprint", "not tight", "by words"]
    assert (document(finding())["remarks"], document(finding())["notes"]) == ([], [])


@pytest.mark.parametrize("verdict", ["holds", "fails"])
def test_a_control_that_passes_leaves_the_verdict_undecided(verdict):
    found = finding(rejected=False, verdict=verdict, notes=["by words"], remarks=["a misprint"])
    assert found.verdict == "undecided"
    assert found.notes == ["by words", "undecided: the control was not rejected"]
    assert found.remarks == ["a misprint"]


def test_a_kind_of_nothing_measured_is_refused():
    with pytest.raises(ValueError, match=r"kinds\.errors: is none of what was measured"):
        finding(kinds={"errors": "exact"})
