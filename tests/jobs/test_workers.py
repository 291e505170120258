"""What is told in a worker process reaches whoever started it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from icl.config.session import Session
from icl.events import Changed, Event, Item, Progress, Said
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
        session.tell(Progress(Item("train", "mylab/run"), 0.5, "step 1/2"))
        session.say("said")
        print("printed", file=sys.stderr)
        return {"here": "we are"}


def test_progress_too_and_each_line_with_its_item(tmp_path: Path) -> None:
    heard: list[Event] = []
    request: Any = Talks()
    task = Task(request, Session(tmp_path))
    carry_out([task], 2, heard.append)
    assert heard == [
        Changed(task.item, "running"),
        Progress(Item("train", "mylab/run"), 0.5, "step 1/2"),
        Said("said", task.item),
        Said("printed", task.item),
        Changed(task.item, "done", {"here": "we are"}),
    ]
