"""What a check answers, and the document it becomes: remarks on the paper's text apart from other notes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from icl.checks.verdict import Bound, Control, Finding, deciding
from icl.cli import main
from icl.config import conf_dir
from icl.jobs.verdicts import verdict_document
from icl.verdicts import error_of

FOLDER = conf_dir() / "check"
SHIPPED = sorted(path.relative_to(FOLDER).with_suffix("").as_posix() for path in FOLDER.rglob("*.yaml"))
# Of the slow ones, the smallest settings.
SMALL = {
    "ahn/theorem2": ["check.dim=2", "check.starts=1"],
    "ahn/theorem4": ["check.dim=2", "check.starts=8"],
    "xie/theorem1": ["check.dim=3", "check.restarts=1"],
}


class Stated:
    reference, claim = "Lemma 0", "One is one."


def finding(rejected: bool = True, **texts: Any) -> Finding:
    return Finding(
        "holds", {"error": 0.0}, Bound(1.0, "rounding", "error"), Control("two", 2.0, rejected), **texts
    )


def document(found: Finding) -> dict[str, Any]:
    return verdict_document("mylab/lemma0", Stated(), {}, found, "holds", 0.5)


def test_the_document_has_the_remarks_twice_and_notes_that_hold_everything() -> None:
    told = document(finding(notes=("by words",), remarks=("a misprint", "not tight")))
    assert told["remarks"] == ["a misprint", "not tight"]
    assert told["notes"] == ["a misprint", "not tight", "by words"]
    assert (document(finding())["remarks"], document(finding())["notes"]) == ([], [])


def test_a_control_that_passes_is_a_note_and_no_remark() -> None:
    found = finding(rejected=False, notes=["by words"], remarks=["a misprint"])
    assert found.verdict == "undecided"
    assert found.notes == ["by words", "undecided: the control was not rejected"]
    assert found.remarks == ["a misprint"]


@pytest.mark.parametrize(
    ("verdicts", "joint", "of"),
    [
        (("holds", "holds"), "holds", "first"),
        (("holds", "undecided"), "undecided", "second"),
        (("undecided", "fails"), "fails", "second"),
        (("fails", "fails"), "fails", "first"),
    ],
)
def test_the_bound_shown_is_that_of_the_first_condition_that_decides(verdicts, joint, of) -> None:
    bounds = (Bound(1.0, "rounding", "first"), Bound(2.0, "rounding", "second", ">"))
    verdict, bound = deciding(list(zip(verdicts, bounds, strict=True)))
    assert (verdict, bound.of) == (joint, of)


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_check_tells_remarks_from_notes_and_says_of_each_number_what_it_is(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    common = ["scale=smoke", "logger=none", "format=json", f"paths.outputs={tmp_path}"]
    assert main(["check", f"check={name}", *SMALL.get(name, []), *common]) == 0
    told = json.loads(capsys.readouterr().out)
    remarks, notes = told["remarks"], told["notes"]
    assert isinstance(remarks, list) and notes[: len(remarks)] == remarks
    assert all(isinstance(text, str) and text for text in notes) and len(set(notes)) == len(notes)
    measured, kinds = told["measured"], told["kinds"]
    numbers = {k for k, v in measured.items() if not isinstance(v, int | str | None)}
    errors = {error_of(name) for name in measured} & set(measured)
    assert (numbers - errors) | {told["bound"]["of"]} <= set(kinds) <= set(measured) - errors
    known = {name: np.any(measured[name]) for name in errors}
    assert all(kinds[name.removesuffix("_stderr")] == "sampled" for name in errors if known[name])
