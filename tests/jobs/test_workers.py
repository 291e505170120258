"""Tests that the events of a worker process reach its parent."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from icl.config.search_path import ConfigDirs
from icl.config.session import Session
from icl.errors import InputError
from icl.events import ItemProgress, Message, StateChanged, WorkItem
from icl.jobs.execution import run_all
from icl.jobs.execution.task import QueuedRequest
from icl.jobs.execution.workers import jobs_of, run_tasks
from icl.jobs.requests.request import Document
from tests.processes import ROOT


@dataclass(frozen=True)
class Talks:
    """A request that prints, logs and fails in each of the ways there are."""

    kind: ClassVar[str] = "check"
    id: str = "mylab/talks"
    identity: str = "0"

    def lookup(self, session: Session) -> None:
        return None

    def validate(self) -> None: ...

    def execute(self, session: Session) -> Document:
        session.on_event(ItemProgress(WorkItem("train", self.id), 0.5, "step 1/2"))
        session.info("said")
        print("printed", file=sys.stderr)
        return {"here": "we are"}


def test_progress_too_and_each_line_with_its_item(tmp_path: Path) -> None:
    heard: list[Any] = []
    requests: list[Any] = [Talks(), Talks("mylab/whispers")]
    tasks = [QueuedRequest(request, Session(tmp_path)) for request in requests]
    run_tasks(tasks, 2, heard.append)
    for task in tasks:
        assert [event for event in heard if event.item.id == task.item.id] == [
            StateChanged(task.item, "running"),
            ItemProgress(WorkItem("train", task.item.id), 0.5, "step 1/2"),
            Message("said", task.item),
            Message("printed", task.item),
            StateChanged(task.item, "done", {"here": "we are"}),
        ]


def test_figures_with_the_most_runs_begin_first_where_several_run_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compare one worker's order, by name, with that of two: of ahn's figures the sixth takes longest."""
    begun: list[str] = []
    monkeypatch.setattr(run_all, "run_tasks", lambda tasks, *_: begun.extend(task.item.id for task in tasks))
    tasks = run_all.tasks_of("figure", "ahn/all", [f"paths.outputs={tmp_path}"], ConfigDirs())
    run_all.run_all("figure", tasks, 1, lambda _: None)
    assert begun == sorted(begun)
    begun.clear()
    run_all.run_all("figure", tasks, 2, lambda _: None)
    assert sorted(begun[:2]) == ["ahn/fig6", "ahn/fig7"]
    assert begun[-2:] == ["ahn/fig1", "ahn/fig2"]  # of one run
    for task in tasks:
        first, second = (task.request.missing(task.session, validated=v) for v in (True, False))
        assert [run.identity for run in first] == [run.identity for run in second]
    assert not list(tmp_path.glob("runs"))


def test_as_many_as_there_are_cores_and_memory_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOKY_MAX_CPU_COUNT")
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(5)), raising=False)
    monkeypatch.setattr("joblib.externals.loky.backend.context._cpu_count_cgroup", lambda most: most)
    free = 64e9
    monkeypatch.setattr("icl.jobs.execution.workers.available_bytes", lambda: free)
    assert jobs_of(None) == 5 and jobs_of(3) == 3
    free = 4e9
    assert jobs_of(None) == 2 and jobs_of(3) == 3
    free = 1e9
    assert jobs_of(None) == 1
    with pytest.raises(InputError, match="jobs=0: must be"):
        jobs_of(0)


def test_a_script_need_not_ask_for_its_name(tmp_path: Path) -> None:
    """Call from a script, which workers do not run again; a process that may start none works by itself."""
    script = tmp_path / "script.py"
    script.write_text("""
import multiprocessing, sys
print("begun")
from icl.config.search_path import ConfigDirs
from icl.config.session import Session
from icl.jobs.execution import run_all
from icl.jobs.execution.task import QueuedRequest
from icl.jobs.execution.workers import run_tasks, jobs_of
from pathlib import Path
from tests.jobs.test_workers import Talks
heard = []
tasks = [QueuedRequest(Talks(f"mylab/{name}"), Session(Path(sys.argv[1]))) for name in "ab"]
run_tasks(tasks, 2, heard.append)
print(sum(getattr(event, "state", "") == "done" for event in heard))
multiprocessing.current_process()._config["daemon"] = True
print(jobs_of(None))
""")
    environment = {k: v for k, v in os.environ.items() if k != "LOKY_MAX_CPU_COUNT"}
    command = [sys.executable, str(script), str(tmp_path)]
    done = subprocess.run(
        command, env=environment | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stdout) == (0, "begun\n2\n1\n"), done.stderr


def test_one_alone_needs_no_other_process(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    request: Any = Talks()
    heard: list[Any] = []
    run_tasks([QueuedRequest(request, Session(tmp_path))], 2, heard.append)
    assert capsys.readouterr().err == "printed\n" and heard[-1].document == {"here": "we are"}
