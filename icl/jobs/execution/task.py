"""A request to be carried out, and what became of it: the same in this process, in a worker, on a cluster."""

from __future__ import annotations

import traceback
from dataclasses import dataclass

from icl.config.session import Session
from icl.errors import Unavailable, one_line
from icl.events import StateChanged, WorkItem
from icl.jobs.requests.request import Request, run_request
from icl.runs.atomic import DiskFull, Unwritable


@dataclass(frozen=True)
class QueuedRequest:
    """A request to be carried out."""

    request: Request
    session: Session
    runs_key: str = ""  # tasks of one such name want the same runs

    @property
    def item(self) -> WorkItem:
        return WorkItem(self.request.kind, self.request.id)


def task_of(request: Request, session: Session) -> QueuedRequest:
    return QueuedRequest(request, session, getattr(request, "runs_key", ""))


def run_task(task: QueuedRequest) -> StateChanged:
    """Run a request and return its outcome. An interruption passes through."""
    try:
        return StateChanged(task.item, "done", run_request(task.request, task.session))
    except Unwritable as error:
        return StateChanged(
            task.item, "full" if isinstance(error, DiskFull) else "unwritable", text=one_line(error)
        )
    except Unavailable as error:
        return StateChanged(task.item, "skipped", text=one_line(error))
    except (Exception, SystemExit) as error:
        reason = f"{type(error).__name__}: {one_line(error)}"
        return StateChanged(task.item, "failed", text=reason, trace=traceback.format_exc())
