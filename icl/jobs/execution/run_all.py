"""Run all checks or figures, or all of one paper (check=all, figure=ahn/all), each as configured."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence

from icl.config.search_path import ConfigDirs
from icl.errors import InputError, Unavailable, nearest
from icl.events import Event, Listener, Planned, StateChanged
from icl.jobs.execution.cluster import Cluster
from icl.jobs.execution.task import QueuedRequest, task_of
from icl.jobs.execution.workers import run_tasks
from icl.jobs.requests.figure import FigureRequest
from icl.jobs.requests.parse import parse_named
from icl.jobs.requests.request import SMOKE, Document, lookup_or_validate


def tasks_of(kind: str, which: str, overrides: Sequence[str], configs: ConfigDirs) -> list[QueuedRequest]:
    """Return a validated task for each item of `which` (all or PAPER/all); `overrides` apply to each."""
    tasks = [task_of(*parse_named(kind, id, overrides, configs)) for id in _ids(kind, which, configs)]
    for task in tasks:
        with contextlib.suppress(Unavailable):  # reported when the task runs
            lookup_or_validate(task.request, task.session)
    return tasks


def run_all(
    kind: str, tasks: Sequence[QueuedRequest], jobs: int, listener: Listener, cluster: Cluster | None = None
) -> tuple[Document, int]:
    """Run the tasks and return their documents together, and the number of failures."""
    started = time.monotonic()
    ended: list[StateChanged] = []

    def on_event(event: Event) -> None:
        listener(event)
        if isinstance(event, StateChanged) and event.state != "running":
            ended.append(event)

    if jobs > 1:  # a long one that begins last leaves the other workers without work
        tasks = sorted(tasks, key=lambda task: -_count_missing(task))
    for task in tasks[1:]:
        task.session.cache[SMOKE] = True  # the first states it for all
    listener(Planned(len(tasks), 0))
    run_tasks(tasks, jobs, on_event, cluster)
    documents = sorted((dict(e.document) for e in ended if e.document), key=lambda d: str(d[kind]))
    skipped = sorted((e.item.id, e.text) for e in ended if e.state == "skipped")
    document: Document = {
        f"{kind}s": documents,
        "skipped": [{"group": kind, "id": id, "reason": reason} for id, reason in skipped],
        "seconds": time.monotonic() - started,
    }
    return document, sum(event.state == "failed" for event in ended)


def _count_missing(task: QueuedRequest) -> int:
    """Return how many runs a figure trains; 0 where it cannot be told, or of a check."""
    with contextlib.suppress(Exception):  # told when the task runs
        if isinstance(task.request, FigureRequest):
            return len(task.request.missing(task.session, validated=False))
    return 0


def _ids(kind: str, which: str, configs: ConfigDirs) -> list[str]:
    known = configs.options(kind)
    ids = [name for name in known if name.startswith(which.removesuffix("all"))]
    if not ids:
        papers = sorted({f"{name.partition('/')[0]}/all" for name in known})
        hint = f" (one of: all, {', '.join(papers)}){nearest(which, papers)}"
        raise InputError(f"{kind}={which}: no such {kind}s{hint}")
    return ids
