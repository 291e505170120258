"""Tests of submitit's jobs on this machine: what they leave, and that they are queued again."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from icl.config.session import Session
from icl.errors import InputError
from icl.events import Event, StateChanged
from icl.jobs.execution.cluster import Cluster, cluster_of, parse_cluster
from icl.jobs.execution.task import QueuedRequest
from icl.jobs.execution.workers import run_tasks
from icl.jobs.requests.request import Document

pytest.importorskip("submitit", reason="the slurm extra is not installed")
LOCAL = Cluster("local", minutes=5, parallel=2)


@dataclass(frozen=True)
class Counts:
    """A request that is told, as often as `ends` says, that its time is over; then it fails, dies or ends."""

    kind: ClassVar[str] = "check"
    id: str
    ends: int = 0
    then: str = "ends"
    identity: str = "0"

    def lookup(self, session: Session) -> None:
        return None

    def validate(self) -> None: ...

    def execute(self, session: Session) -> Document:
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


def test_jobs_end_fail_die_and_are_queued_again(tmp_path: Path) -> None:
    heard: list[Event] = []
    requests: list[Any] = [
        Counts("again", ends=1),
        Counts("fails", then="fails"),
        Counts("dies", then="dies"),
    ]
    tasks = [
        QueuedRequest(request, Session(tmp_path), runs_key="one" if i else "")
        for i, request in enumerate(requests)
    ]
    run_tasks(tasks, 1, heard.append, LOCAL)
    changed = [event for event in heard if isinstance(event, StateChanged)]
    ended = {event.item.id: event for event in changed if event.state != "running"}
    assert ended["again"].document == {"started": 2, "by zero": None}
    assert [ended[name].state for name in ("again", "fails", "dies")] == ["done", "failed", "failed"]
    assert (
        ended["fails"].text == "ZeroDivisionError: division by zero" and "in execute" in ended["fails"].trace
    )
    assert "its job died" in ended["dies"].text and Path(ended["dies"].text.rpartition("; ")[2]).exists()
    # Those that want the same run are never under way together.
    states = [(event.item.id, event.state) for event in changed]
    assert states.index(("fails", "failed")) < states.index(("dies", "running"))


@pytest.mark.parametrize(
    ("node", "said"),
    [
        ({"engine": "local", "minutes": 0}, "cluster.minutes=0: must be"),
        ({"engine": "local", "minutes": 1, "cpu": 2}, "cluster.cpu: "),
        ({"engine": "slurm", "minutes": 1, "grace": 60}, "cluster.grace=60: must be less"),
        ({"engine": "cloud", "minutes": 1}, "cluster.engine=cloud: must be one of"),
        ({"engine": "slurm", "minutes": 1, "gpus": 0}, "cluster.gpus=0: must be"),
        ("slrm", "cluster=slrm: must be one of"),
    ],
)
def test_wrong_settings(node: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        cluster_of(node)


def test_no_slurm_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert cluster_of({"engine": "slurm", "minutes": 60}) is not None  # as a job on a node asks
    with pytest.raises(InputError, match="no sbatch and srun here"):
        parse_cluster({"engine": "slurm", "minutes": 60})
