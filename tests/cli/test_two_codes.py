"""Tests of two versions of the code in one outputs folder: what one reports, the other has not made."""

import csv
from pathlib import Path
from typing import Any

import pytest

from icl.jobs.execution import multirun
from icl.runs.record import load_run
from tests.commands import Run, other_code

SWEPT = ["-m", "seed=0,1", "format=json"]


def losses(rows: list[dict[str, str]]) -> list[str]:
    return [row["loss"] for row in rows]


def table(document: dict[str, Any]) -> list[dict[str, str]]:
    return list(csv.DictReader(Path(document["sweep_csv"]).open()))


def test_a_sweep_reports_what_its_own_jobs_returned(tiny: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have other code make a run again between the end of the jobs and the table."""
    alone = tiny(*SWEPT).json
    summarize = multirun.summarize

    def late(*args):
        with other_code():
            assert tiny("seed=0").code == 0
        return summarize(*args)

    monkeypatch.setattr(multirun, "summarize", late)
    for most in (1000, 1):
        monkeypatch.setattr(multirun, "MANY", most)
        found = tiny(*SWEPT, "force=true" if most == 1000 else "force=false")
        assert found.code == 0 and found.json["done"] == 2
        assert found.json["summary"] == alone["summary"] and table(found.json) == table(alone)


def test_a_job_that_is_not_done_in_the_end_is_a_failure(tiny: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multirun, "run_request", lambda *_: {})
    found = tiny(*SWEPT)
    assert found.code == 4 and found.json["failed"] == 2
    assert "waiting in the end" in found.json["failures"][0]["error"]


def test_other_code_is_stale(tiny: Run, icl: Run) -> None:
    document = tiny(*SWEPT).json
    with other_code():
        tiny("seed=1")
    found = icl("sweep", f"sweep={document['sweep']}", "format=json").json
    assert found["states"]["stale"] == 1 and found["done"] == 1
    assert losses(table(found))[0] and not losses(table(found))[1]
    assert "1 stale" in icl("sweep", f"sweep={document['sweep']}").out
    listed = icl("runs", "format=json").json["runs"]
    assert sorted(run["stale"] for run in listed) == [False, True]
    assert tiny(*SWEPT).json["cached"] == 1


def test_a_record_that_was_made_again_is_not_read_for_the_old_one(tiny: Run) -> None:
    run = load_run(tiny("seed=0", "format=json").json["run_dir"])
    with other_code():
        tiny("seed=0")
    with pytest.raises(RuntimeError, match=r"weights\.npz has changed meanwhile"):
        run.weights  # noqa: B018
