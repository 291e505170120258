"""Tests of jobs, in one process or in joblib's and submitit's, that fail, die, or whose parent is stopped."""

import json
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from icl.config.session import Session
from icl.events import StateChanged
from icl.jobs.execution.cluster import Cluster
from icl.jobs.execution.task import QueuedRequest
from icl.jobs.execution.workers import run_tasks
from icl.runs.lock import is_live
from tests.commands import tiny_argv
from tests.processes import ROOT, Command, jobs_are_forked

pytest.importorskip("submitit", reason="the slurm extra is not installed")
LOCAL = Cluster("local", minutes=5, parallel=2)


@dataclass(frozen=True)
class Counts:
    """A request whose time is over as often as `ends` says, by signal; then it fails, dies or ends."""

    kind: ClassVar[str] = "check"
    id: str
    ends: int = 0
    then: str = "ends"
    identity: str = "0"

    def lookup(self, session):
        return None

    def validate(self): ...

    def execute(self, session):
        with Path(session.outputs, f"{self.id}.txt").open("a") as file:
            print(os.getpid(), file=file)
        started = len(Path(session.outputs, f"{self.id}.txt").read_text().split())
        if started <= self.ends:
            os.kill(os.getpid(), signal.SIGTERM)  # Slurm's before that signal: passed over
            os.kill(os.getpid(), signal.SIGUSR2)
            signal.pause()
        if self.then == "dies":
            os._exit(7)
        return {"started": started, "by zero": 1 / 0 if self.then == "fails" else None}


@pytest.mark.slow
def test_jobs_end_fail_die_and_are_queued_again(tmp_path):
    heard = []
    requests = [Counts("again", ends=1), Counts("fails", then="fails"), Counts("dies", then="dies")]
    tasks = [QueuedRequest(r, Session(tmp_path), runs_key="one" if i else "") for i, r in enumerate(requests)]
    run_tasks(tasks, 1, heard.append, LOCAL)
    changed = [event for event in heard if isinstance(event, StateChanged)]
    ended = {event.item.id: event for event in changed if event.state != "running"}
    assert ended["again"].document == {"started": 2, "by zero": None}
    assert [ended[name].state for name in ("again", "fails", "dies")] == ["done", "failed", "failed"]
    assert ended["fails"].text == "ZeroDivisionError: division by zero"
    assert "in execute" in ended["fails"].trace
    assert "its job died" in ended["dies"].text and Path(ended["dies"].text.rpartition("; ")[2]).exists()
    # Those that want the same run are never under way together.
    states = [(event.item.id, event.state) for event in changed]
    assert states.index(("fails", "failed")) < states.index(("dies", "running"))


HELD = """
import os, time

class Held:
    # Slow until a file says go, so that no run can end before it is interrupted; a file says that it began.
    def rate(self, base, step):
        if step and not os.path.exists(os.environ["HELD_GO"]):
            open(os.environ["HELD_GO"] + f"-wanted-{os.getpid()}", "w").close()
            time.sleep(0.05)
        return base
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("launcher", "signum", "code", "seeds", "begun"),
    [
        ("basic", signal.SIGINT, 130, "0,1", 1),
        ("joblib", signal.SIGTERM, 143, "0,1", 2),
        ("joblib", signal.SIGKILL, -9, "0", 1),
        ("submitit_local", signal.SIGINT, 130, "0", 1),
    ],
)
def test_interrupted_and_continued(launcher, signum, code, seeds, begun, tiny, outputs, monkeypatch):
    (outputs.parent / "held_lab.py").write_text(HELD)
    monkeypatch.syspath_prepend(str(outputs.parent))
    for name, value in {"ICL_PACKAGES": "held_lab", "HELD_GO": str(outputs.parent / "go")}.items():
        monkeypatch.setenv(name, value)
    held = ["~optimizer.schedule", "+optimizer.schedule._target_=held_lab.Held", "train.steps=200"]
    argv = tiny_argv(*held, "-m", f"seed={seeds}", "format=json")
    launched = [f"hydra/launcher={launcher}", "logger=none", f"paths.outputs={outputs}"]
    launched += ["hydra.launcher.n_jobs=2"] if launcher == "joblib" else []
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(outputs.parent)])}
    # A process forked from the parent holds the parent's locks, too: its death shows in others alone.
    prepare = None if signum == signal.SIGKILL else jobs_are_forked
    command = Command([*argv, *launched], outputs.parent, environment, prepare)
    folder = outputs / "runs" / "ahn" / "theorem3"
    command.until(lambda: len(list(outputs.parent.glob("go-wanted-*"))) == begun)
    command.send(signum)
    ended = command.end()
    while any(map(is_live, folder.glob("*/lock"))):  # of jobs whose parent was killed
        time.sleep(0.05)
    assert (ended, command.out) == (code, ""), command.err
    if signum != signal.SIGKILL:
        assert "interrupted; the same command continues" in command.err and "Traceback" not in command.err
        assert not list(outputs.glob("sweeps/*/.launcher-*"))
    states = [json.loads(p.read_text())["status"] for p in folder.glob("*/run.json")]
    assert set(states) == {"interrupted"}
    (outputs.parent / "go").touch()
    again = tiny(*argv[1:])
    assert again.code == 0 and again.json["done"] == len(seeds.split(","))
    assert sum(found["document"]["resumed"] for found in again.json["results"]) == len(states)
