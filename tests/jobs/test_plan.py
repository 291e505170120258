"""Tests of the plan: what is done and what is left, in which order, how long, and shared by workers."""

import queue
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from icl.config.search_path import ConfigDirs
from icl.config.session import Session
from icl.events import Event, StateChanged
from icl.jobs.execution.plan import PlannedItem, as_text, plan_parts
from icl.jobs.execution.reproduce import ReportUpdater
from icl.jobs.execution.run_all import tasks_of
from icl.jobs.execution.task import QueuedRequest
from icl.jobs.execution.workers import following, run_tasks
from icl.jobs.requests.figure import FigureRequest
from icl.jobs.requests.parse import parse_named
from icl.jobs.stored.report import ReportRequest
from icl.report.content import ReportContent, ReportEntry
from icl.runs.atomic import Unwritable
from icl.runs.code import TRAINING, code_digest
from tests.records import write_sealed


def part(group: str, id: str, **more: Any) -> PlannedItem:
    return PlannedItem(ReportEntry(group, id, "mylab", "", ""), **more)


def task(name: str, runs_key: str = "") -> QueuedRequest:
    return QueuedRequest(FigureRequest(name, "smoke", {}), Session(Path("/out")), runs_key)


def test_the_plan_counts_a_shared_run_once_and_says_what_it_does_not_know() -> None:
    outputs = Path("/out")
    parts = [
        part("check", "mylab/a", past={"mylab/a": 30.0}),
        part("figure", "mylab/f", past={"mylab/f": 10.0, "/run": 200.0}),
        part("figure", "mylab/g", past={"mylab/g": 20.0, "/run": 200.0}),
    ]
    text = as_text(parts, "laptop", outputs, 1)
    assert "0 of 3 done already, 3 to run, about 4.3 min by past runs here" in text  # 30 + 10 + 20 + 200
    assert "checks: mylab/a (30 s)" in text and "mylab/f (3.5 min), mylab/g (3.7 min)" in text
    assert "about 3.7 min" in as_text(parts, "laptop", outputs, 2)  # no worker is quicker than mylab/g
    parts.append(part("figure", "mylab/h"))
    assert "about 4.3 min by past runs here, and 1 of unknown length" in as_text(parts, "laptop", outputs, 1)
    assert "time unknown" in as_text(parts[-1:], "laptop", outputs, 1)
    done = replace(parts[-1], entry=replace(parts[-1].entry, state="done"))
    assert "1 of 1 done already, nothing to run" in as_text([done], "laptop", outputs, 1)


def test_past_times_are_read_and_order_what_is_left(tmp_path: Path) -> None:
    """Read times of records of the same settings; of a figure's runs only those of other code."""

    def record(kind: str, id: str, document: dict[str, Any]) -> None:
        request, _ = parse_named(kind, id, ["scale=laptop"], ConfigDirs())
        place = f"figures/{id}/laptop" if kind == "figure" else f"checks/{id}"
        file = tmp_path / place / f"{request.identity}.json"
        settings = dict(request.settings)  # type: ignore[attr-defined]
        write_sealed(file, digest="other", document={"settings": settings, **document})

    runs = [str(tmp_path / name) for name in ("other", "current")]
    for path, digest in zip(runs, ("0" * 16, code_digest(TRAINING)), strict=True):
        write_sealed(Path(path) / "run.json", code=TRAINING, digest=digest, seconds=100.0)
    bound, control = (
        {"value": 1.0, "source": "", "of": "x"},
        {"description": "", "measured": 2.0, "rejected": True},
    )
    verdict = {
        "verdict": "holds",
        "expected": "holds",
        "measured": {"x": 0.5},
        "bound": bound,
        "control": control,
    }
    record("check", "ahn/lemma4", {"seconds": 7.0, "check": "ahn/lemma4", **verdict})
    drawn = {"drawing_seconds": 2.0, "configs": "", "contents": {}, "runs": runs}
    drawn["drawn_from"] = [{"run": Path(path).name} for path in runs]
    record("figure", "ahn/fig7", {"files": {"png": "/gone"}, **drawn})
    parts = plan_parts(ReportRequest("laptop", ("ahn",)), Session(tmp_path))
    groups = [found.entry.group for found in parts]
    assert groups == sorted(groups) and all(found.entry.state == "waiting" for found in parts)
    checks = [(found.entry.id, found.past) for found in parts if found.entry.group == "check"]
    others = [
        (id, None) for id in ConfigDirs().options("check") if id.startswith("ahn/") and id != "ahn/lemma4"
    ]
    assert checks == [("ahn/lemma4", {"ahn/lemma4": 7.0}), *others]
    figures = [found for found in parts if found.entry.group == "figure"]
    assert figures[0].entry.id == "ahn/fig7" and figures[1].past is None
    assert figures[0].past == {"ahn/fig7": 2.0, runs[0]: 100.0}
    runs_key = {found.entry.id: found.task.runs_key for found in figures if found.task}
    assert runs_key["ahn/fig1"] == runs_key["ahn/fig2"] != runs_key["ahn/fig3"]
    by_name = {
        task.request.id: task.runs_key
        for task in tasks_of("figure", "ahn/all", [f"paths.outputs={tmp_path}"], ConfigDirs())
    }
    assert by_name["ahn/fig1"] == runs_key["ahn/fig1"] and by_name["ahn/fig3"] == by_name["ahn/fig5"]


def test_the_page_keeps_up_without_being_written_for_each_of_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []

    def write(told: ReportContent, outputs: Path) -> Path:
        written.append(told.entries[0].state)
        return outputs / "report"

    monkeypatch.setattr("icl.jobs.execution.reproduce.write", write)
    only = part("check", "mylab/a")
    page = ReportUpdater([only], ReportRequest("smoke"), Session(tmp_path))
    ends: queue.Queue[bool] = queue.Queue()  # of a pause: whether all is over
    begun = threading.Semaphore(0)
    monkeypatch.setattr(page._over, "wait", lambda seconds: (begun.release(), ends.get())[1])
    monkeypatch.setattr(page._over, "set", lambda: ends.put(True))

    def a_pause_ends() -> None:
        ends.put(False)
        begun.acquire()

    with page:
        begun.acquire()
        assert written == ["waiting"]
        only.entry = replace(only.entry, state="running")
        for _ in range(1000):
            page.mark_changed()
        a_pause_ends()
        assert written == ["waiting", "running"]
        a_pause_ends()
        assert len(written) == 2  # no news
    assert written == ["waiting", "running", "waiting"]  # interrupted, it waits for the next start
    names = [thread.name for thread in threading.enumerate()]
    assert not any("_update_until_over" in name for name in names)


def test_tasks_that_want_the_same_run_are_kept_apart() -> None:
    """Make the run in one worker, while the other takes something else."""
    tasks = [task("b", "run"), task("c", "run"), task("d")]
    assert following(tasks, [task("a", "run"), None]).item.id == "d"
    assert following(tasks, [task("a", "run"), None]).item.id == "b"  # better than nothing
    assert following(tasks, [None, None]).item.id == "c"


def test_a_full_disk_stops_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[Event] = []

    def full(task: QueuedRequest) -> StateChanged:
        return StateChanged(task.item, "unwritable", text="full")

    monkeypatch.setattr("icl.jobs.execution.workers.run_task", full)
    with pytest.raises(Unwritable, match="full"):
        run_tasks([task("a"), task("b")], 1, heard.append)
    assert [event.state for event in heard if isinstance(event, StateChanged)] == ["running"]
