"""What is told in a worker process reaches whoever started it."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from icl.config.session import Session
from icl.events import Changed, Item, Progress, Said
from icl.jobs.request import Document
from icl.jobs.task import Task
from icl.jobs.workers import carry_out


@dataclass(frozen=True)
class Talks:
    """A request that says something in each of the ways there are."""

    kind: ClassVar[str] = "check"
    id: str = "mylab/talks"
    identity: str = "0"

    def found(self, session: Session) -> None:
        return None

    def validate(self) -> None: ...

    def make(self, session: Session) -> Document:
        session.tell(Progress(Item("train", self.id), 0.5, "step 1/2"))
        session.say("said")
        print("printed", file=sys.stderr)
        return {"here": "we are"}


def test_progress_too_and_each_line_with_its_item(tmp_path: Path) -> None:
    heard: list[Any] = []
    requests: list[Any] = [Talks(), Talks("mylab/whispers")]
    tasks = [Task(request, Session(tmp_path)) for request in requests]
    carry_out(tasks, 2, heard.append)
    for task in tasks:
        assert [event for event in heard if event.item.id == task.item.id] == [
            Changed(task.item, "running"),
            Progress(Item("train", task.item.id), 0.5, "step 1/2"),
            Said("said", task.item),
            Said("printed", task.item),
            Changed(task.item, "done", {"here": "we are"}),
        ]


def test_one_alone_needs_no_other_process(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    request: Any = Talks()
    heard: list[Any] = []
    carry_out([Task(request, Session(tmp_path))], 2, heard.append)
    assert capsys.readouterr().err == "printed\n" and heard[-1].document == {"here": "we are"}
