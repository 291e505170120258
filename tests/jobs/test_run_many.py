"""Tests of many requests: what workers do and say, what is read and not composed, and a full disk."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from icl.config.compose import compose
from icl.config.search_path import ConfigDirs
from icl.config.session import Session
from icl.errors import InputError
from icl.jobs.execution.run_many import run_many, worker_count
from icl.jobs.requests.parse import _node, parse_named
from icl.jobs.requests.request import Document
from icl.progress import Event, ItemProgress, StateChanged, WorkItem
from icl.runs.atomic import Unwritable


@dataclass(frozen=True)
class Talks:
    """A request that prints and logs."""

    kind: ClassVar[str] = "check"
    id: str = "mylab/talks"
    identity: str = "0"
    runs_key: str = "one"

    def lookup(self, session: Session) -> None:
        return None

    def validate(self) -> None: ...

    def execute(self, session: Session) -> Document:
        session.on_event(ItemProgress(WorkItem("train", self.id), 0.5, "step 1/2"))
        session.info(f"{self.id} said")
        return {"here": os.getpid()}


def test_what_workers_return_and_say(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Those that want the same runs are done one after another, by one worker."""
    heard: list[Any] = []
    requests: list[Any] = [Talks(runs_key="other"), Talks("mylab/whispers"), Talks("mylab/shouts")]
    session = Session(tmp_path, on_event=heard.append)
    run_many(requests, session, 2)
    for request in requests:
        assert [e.state for e in heard if e.item.id == request.id] == ["running", "done"]
    by = {event.item.id: event.document["here"] for event in heard if event.document}
    assert by["mylab/whispers"] == by["mylab/shouts"] and os.getpid() not in by.values()
    assert sorted(capfd.readouterr().err.splitlines()) == sorted(f"{r.id} said" for r in requests)
    heard.clear()
    run_many(requests[:1], session, 2)  # one alone needs no other process
    assert heard[-1].document == {"here": os.getpid()}


def test_as_many_as_there_are_cores_and_memory_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOKY_MAX_CPU_COUNT")
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(5)), raising=False)
    monkeypatch.setattr("joblib.externals.loky.backend.context._cpu_count_cgroup", lambda most: most)
    for free, jobs in ((64e9, 5), (4e9, 2), (1e9, 1)):
        monkeypatch.setattr("icl.jobs.execution.run_many.available_bytes", lambda free=free: free)
        assert worker_count(None) == jobs and worker_count(3) == 3
    with pytest.raises(InputError, match="jobs=0: must be"):
        worker_count(0)


def test_figures_that_are_drawn_from_the_same_runs() -> None:
    figures = [parse_named("figure", f"ahn/fig{n}", [], ConfigDirs())[0] for n in (1, 2, 3, 5)]
    keys: list[Any] = [figure.runs_key for figure in figures]  # type: ignore[attr-defined]
    assert keys[0] == keys[1] != keys[2] == keys[3]


@pytest.mark.parametrize("kind", ["check", "figure"])
@pytest.mark.parametrize("overrides", [["scale=smoke"], ["scale=paper", "check.seed=3"]])
def test_a_file_that_is_read_is_what_hydra_composes(kind: str, overrides: list[str]) -> None:
    given = overrides if kind == "check" else overrides[:1]
    configs, without = ConfigDirs(), []
    base = compose(configs, kind, given)
    for id in configs.options(kind)[::7]:
        node = _node(kind, id, configs, base)
        composed = compose(configs, kind, [f"{kind}={id}", *given]).settings
        without += [id] if node is None else []
        assert node is None or {**base.settings, kind: node} == composed, id
    assert len(without) < 2


def test_a_full_disk_stops_everything(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    heard: list[Event] = []

    def full(self: Talks, session: Session) -> Document:
        raise Unwritable("full")

    monkeypatch.setattr(Talks, "execute", full)
    requests: list[Any] = [Talks("a"), Talks("b")]
    with pytest.raises(Unwritable, match="full"):
        run_many(requests, Session(tmp_path, on_event=heard.append), 1)
    assert [event.state for event in heard if isinstance(event, StateChanged)] == ["running"]
