"""Tests of `icl reproduce`: what is done and what is left."""

import json
from pathlib import Path
from typing import Any

import pytest

from icl.checks.ahn.lemma1 import Lemma1
from icl.checks.statement import Measured
from icl.config.search_path import ConfigDirs
from icl.errors import Unavailable
from icl.jobs.stored.report_content import ReportRequest, blank_entries
from tests.commands import Run, assert_refused
from tests.loggers.wandb_file import records


@pytest.fixture
def two_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reduce everything to two quick checks."""
    every = blank_entries(ReportRequest("smoke"), ConfigDirs())
    kept = [entry for entry in every if entry.id in ("ahn/lemma1", "ahn/theorem1") and entry.group == "check"]
    monkeypatch.setattr("icl.jobs.execution.run_many.blank_entries", lambda *asked: kept)
    monkeypatch.setattr("icl.jobs.execution.run_many.ids_of", lambda *asked: [entry.id for entry in kept])


SMOKE = ("reproduce", "scale=smoke", "format=json")


def test_what_is_not_available_is_skipped_and_alone_is_an_error(
    icl: Run, two_checks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Any, m: Measured) -> None:
        raise Unavailable("needs a language model: none is here")

    measure = Lemma1.measure
    monkeypatch.setattr(Lemma1, "measure", refuse)
    skipped = [{"group": "check", "id": "ahn/lemma1", "reason": "needs a language model: none is here"}]
    result = icl(*SMOKE)
    assert (result.code, result.json["skipped"], result.json["failures"]) == (0, skipped, [])
    assert [check["check"] for check in result.json["checks"]] == ["ahn/theorem1"]
    assert "needs a language model: none is here" in icl("reproduce", "scale=smoke").out
    many = icl("check", "check=all", "scale=smoke", "format=json")
    assert (many.code, many.json["skipped"], len(many.json["checks"])) == (0, skipped, 1)
    assert many.err.count("needs a language model") == 1
    assert_refused(icl("check", "check=ahn/lemma1", "scale=smoke"), "needs a language model")
    monkeypatch.setattr(Lemma1, "measure", measure)
    assert icl(*SMOKE).json["skipped"] == []


def test_wandb_has_one_project_grouped_by_paper_and_scale(icl: Run, two_checks: None, outputs: Path) -> None:
    result = icl(*SMOKE, "logger.wandb.project=lab", logger="wandb_offline")
    assert (result.code, result.json["failures"], len(result.json["checks"])) == (0, [], 2)
    whole = sorted((outputs / "wandb").glob("offline-run-*/*.wandb"), key=lambda path: path.name)
    runs = [next(record.run for record in records(log) if record.HasField("run")) for log in whole]
    assert [run.display_name for run in runs] == ["ahn/lemma1 scale=smoke", "ahn/theorem1 scale=smoke"]
    for run in runs:
        assert (run.project, run.run_group, run.job_type) == ("lab", "ahn-smoke", "check")
        assert list(run.tags) == ["ahn", "smoke"]
    (table,) = (whole[0].parent / "files").rglob("verdicts*.json")
    columns, (row,) = json.loads(table.read_text()).values()
    assert dict(zip(columns, row, strict=True))["verdict"] == result.json["checks"][0]["verdict"]
