"""A request to be carried out, and what became of it: the same in this process, in a worker, on a cluster."""

from __future__ import annotations

import traceback
from dataclasses import dataclass

from icl.config.session import Session
from icl.errors import Unavailable, one_line
from icl.events import Changed, Item
from icl.jobs.request import Request, obtain
from icl.runs.atomic import Full, Unwritable


@dataclass(frozen=True)
class Task:
    """A request to be carried out."""

    request: Request
    session: Session
    alike: str = ""  # tasks of one such name want the same runs

    @property
    def item(self) -> Item:
        return Item(self.request.kind, self.request.id)


def task_of(request: Request, session: Session) -> Task:
    return Task(request, session, getattr(request, "alike", ""))


def attempt(task: Task) -> Changed:
    """What became of it. An interruption is no outcome and passes."""
    try:
        return Changed(task.item, "done", obtain(task.request, task.session))
    except Unwritable as error:
        return Changed(task.item, "full" if isinstance(error, Full) else "unwritable", text=one_line(error))
    except Unavailable as error:
        return Changed(task.item, "skipped", text=one_line(error))
    except (Exception, SystemExit) as error:
        reason = f"{type(error).__name__}: {one_line(error)}"
        return Changed(task.item, "failed", text=reason, trace=traceback.format_exc())
