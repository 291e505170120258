"""Tests of `icl reproduce`: what is done and what is left."""

import json
from pathlib import Path
from typing import Any

import pytest

from icl.checks.ahn.lemma1 import Lemma1
from icl.config.search_path import ConfigDirs
from icl.errors import Unavailable
from icl.jobs.stored.report import ReportRequest, blank_entries
from tests.commands import Run, assert_refused
from tests.loggers.wandb_file import records


@pytest.fixture
def two_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reduce everything to two quick checks."""
    every = blank_entries(ReportRequest("smoke"), ConfigDirs())
    kept = [entry for entry in every if entry.id in ("ahn/lemma1", "ahn/theorem1") and entry.group == "check"]
    monkeypatch.setattr("icl.jobs.execution.plan.blank_entries", lambda *asked: kept)
    monkeypatch.setattr("icl.jobs.execution.run_all._ids", lambda *asked: [entry.id for entry in kept])


SMOKE = ("reproduce", "scale=smoke", "format=json")


def test_a_report_that_cannot_be_written_stops_nothing(
    icl: Run, two_checks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object) -> Path:
        raise OSError("no paper left")

    monkeypatch.setattr("icl.jobs.execution.reproduce.write", refuse)
    result = icl(*SMOKE)
    assert result.code == 4 and len(result.json["checks"]) == 2 and result.json["report"] is None
    assert result.json["failures"] == [{"group": "report", "id": "report", "error": "OSError: no paper left"}]
    text = icl("reproduce", "scale=smoke")
    assert "failed report report: OSError: no paper left" in text.out


def test_what_is_not_available_is_skipped_and_alone_is_an_error(
    icl: Run, two_checks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Any) -> None:
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
    page = Path(icl("report", "scale=smoke", "format=json").json["report"])
    assert "needs a language model: none is here" in page.read_text(), "a later page forgets the reason"
    monkeypatch.setattr(Lemma1, "measure", measure)
    assert icl(*SMOKE).json["skipped"] == []
    icl("report", "scale=smoke")
    assert "needs a language model" not in page.read_text()


def test_wandb_has_one_project_grouped_by_paper_and_scale(
    icl: Run, two_checks: None, outputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Log again after W&B failed midway, which fails nothing."""

    def broken(*args: object) -> None:
        raise ConnectionResetError("W&B's service is gone")

    def logs() -> set[Path]:
        return set((outputs / "wandb").glob("offline-run-*/*.wandb"))

    args = (*SMOKE, "logger.project=lab")
    with monkeypatch.context() as patched:
        patched.setattr("icl.loggers.wandb_run.WandbRun.table", broken)
        result = icl(*args, logger="wandb_offline")
    assert (result.code, result.json["failures"], len(result.json["checks"])) == (0, [], 2)
    assert result.err.count("W&B has failed (ConnectionResetError") == 2
    before = logs()
    again = icl(*args, logger="wandb_offline")
    assert again.code == 0 and "0 of 2 done already" in again.err
    assert all(check["cached"] for check in again.json["checks"])
    whole = sorted(logs() - before, key=lambda path: path.name)
    runs = [next(record.run for record in records(log) if record.HasField("run")) for log in whole]
    assert [run.display_name for run in runs] == ["ahn/lemma1 scale=smoke", "ahn/theorem1 scale=smoke"]
    for run in runs:
        assert (run.project, run.run_group, run.job_type) == ("lab", "ahn-smoke", "check")
        assert list(run.tags) == ["ahn", "smoke"]
    (table,) = (whole[0].parent / "files").rglob("verdicts*.json")
    columns, (row,) = json.loads(table.read_text()).values()
    assert dict(zip(columns, row, strict=True))["verdict"] == result.json["checks"][0]["verdict"]
    assert "2 of 2 done already" in icl(*args, logger="wandb_offline").err
    assert logs() == {*before, *whole}
