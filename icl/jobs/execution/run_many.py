"""Run checks and figures one after another in this process, or several at a time by joblib.

A worker of joblib has one thread. If one dies, only its own request fails.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from typing import Any

from icl.config.compose import compose
from icl.config.search_path import ConfigDirs
from icl.config.session import Session
from icl.errors import InputError, Unavailable, nearest, one_line, whole
from icl.events import Event, Listener, Planned, StateChanged, WorkItem, quiet
from icl.jobs.execution.interruption import in_worker, workers_first
from icl.jobs.execution.memory import available_bytes
from icl.jobs.requests.parse import parse_named
from icl.jobs.requests.request import SMOKE, Document, Request, lookup_or_validate, run_request
from icl.runs.atomic import DiskFull, Unwritable

_REFUSING = {"unwritable": Unwritable, "full": DiskFull}
_BYTES = 1.5e9  # of a worker at scale=laptop: torch, and the runs of a figure


@dataclass(frozen=True)
class Task:
    """A request to be carried out."""

    request: Request
    session: Session

    @property
    def item(self) -> WorkItem:
        return WorkItem(self.request.kind, self.request.id)


def run_all(
    kind: str, which: str, overrides: Sequence[str], configs: ConfigDirs, jobs: int, listener: Listener
) -> Document:
    """Run all checks or figures, or all of one paper (check=all, figure=ahn/all), each as configured;
    `overrides` apply to each, and all are validated before the first starts."""
    started, ended = time.monotonic(), []
    ids, base = _ids(kind, which, configs), compose(configs, kind, overrides)
    tasks = [Task(*parse_named(kind, id, overrides, configs, base)) for id in ids]
    for number, task in enumerate(tasks):
        with contextlib.suppress(Unavailable):  # reported when the task runs
            lookup_or_validate(task.request, task.session)
        task.session.cache[SMOKE] = number > 0  # the first states it for all

    def on_event(event: Event) -> None:
        listener(event)
        if isinstance(event, StateChanged) and event.state != "running":
            ended.append(event)

    listener(Planned(len(tasks), 0))
    run_many(tasks, jobs, on_event)
    documents = [dict(event.document) for event in ended if event.document]
    return {f"{kind}s": sorted(documents, key=lambda document: str(document[kind]))} | {
        "failures": told(ended, "failed", "error"),
        "skipped": told(ended, "skipped", "reason"),
        "seconds": time.monotonic() - started,
    }


def told(events: Sequence[StateChanged], state: str, why: str) -> list[dict[str, str]]:
    """Return what has ended so, by name, and why."""
    found = [event for event in events if event.state == state]
    rows = [{"group": event.item.kind, "id": event.item.id, why: event.text} for event in found]
    return sorted(rows, key=lambda row: row["id"])


def _ids(kind: str, which: str, configs: ConfigDirs) -> list[str]:
    known = configs.options(kind)
    ids = [name for name in known if name.startswith(which.removesuffix("all"))]
    if not ids:
        papers = sorted({f"{name.partition('/')[0]}/all" for name in known})
        hint = f" (one of: all, {', '.join(papers)}){nearest(which, papers)}"
        raise InputError(f"{kind}={which}: no such {kind}s{hint}")
    return ids


def jobs_of(given: Any) -> int:
    """Return `jobs`; where it is null, the number of usable cores, as far as there is memory."""
    if given is not None:
        return whole("jobs", given, 1)
    if multiprocessing.current_process().daemon:  # may start no process
        return 1
    from joblib import cpu_count  # knows affinity, and limits of a container

    return max(1, min(cpu_count(), int(available_bytes() / _BYTES)))


def run_many(tasks: Sequence[Task], jobs: int, on_event: Listener) -> None:
    """Run every task once; those that need the same runs one after another."""

    def pass_on(event: Event) -> None:
        if isinstance(event, StateChanged) and event.state in _REFUSING:  # the next would repeat it
            raise _REFUSING[event.state](event.text)
        on_event(event)

    if min(jobs, len(tasks)) > 1:
        _in_workers(tasks, jobs, pass_on)
        return
    for task in tasks:
        pass_on(StateChanged(task.item, "running"))
        pass_on(_ended(replace(task, session=replace(task.session, on_event=on_event))))


def _in_workers(tasks: Sequence[Task], jobs: int, on_event: Listener) -> None:
    waiting: dict[Any, list[Task]] = {}
    for number, task in enumerate(tasks):
        waiting.setdefault(getattr(task.request, "runs_key", number), []).append(task)
    with workers_first() as signals:
        while waiting and not signals:
            under_way = _until_one_dies(waiting, jobs, on_event, signals)
            for task in (task for group in under_way for task in group):  # which of them it was, is not known
                if _until_one_dies({0: [task]}, jobs, on_event, signals) and not signals:
                    on_event(StateChanged(task.item, "failed", text="its process died"))


def _until_one_dies(
    waiting: dict[Any, list[Task]], jobs: int, on_event: Listener, signals: Sequence[int]
) -> list[list[Task]]:
    """Run groups of tasks, taken off `waiting`, until there are none or a worker dies; return those that
    were under way then."""
    from joblib import Parallel, delayed, parallel_config

    under_way: dict[Any, list[Task]] = {}

    def calls() -> Iterator[Any]:
        while waiting and not signals:
            key = next(iter(waiting))
            under_way[key] = waiting.pop(key)
            for task in under_way[key]:
                on_event(StateChanged(task.item, "running"))
            yield delayed(_work)(key, [_bare(task) for task in under_way[key]], os.getpid())

    jobs = max(2, min(jobs, len(waiting)))  # one alone would be run in this process
    try:
        with parallel_config("loky", inner_max_num_threads=1, initializer=_begin, initargs=(sys.path[:],)):
            parallel = Parallel(jobs, return_as="generator_unordered", pre_dispatch=jobs, batch_size=1)
            for key, ended in parallel(calls()):
                under_way.pop(key)
                for event in ended:
                    on_event(event)
    except BrokenProcessPool:
        pass
    return list(under_way.values())


def _bare(task: Task) -> Task:
    """Return a copy to send: the objects built for validation and the listener stay in this process."""
    return replace(task, request=replace(task.request), session=replace(task.session, on_event=quiet))  # type: ignore[type-var]


def _begin(path: list[str]) -> None:
    """Begin a worker: it imports as its starter does, which ends it when it is idle."""
    sys.path[:] = path
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _work(key: Any, tasks: Sequence[Task], starter: int) -> tuple[Any, list[StateChanged]]:
    """Run tasks one after another in a worker, up to an interruption."""
    ended = []
    with in_worker(starter) as begins:
        for task in tasks if begins else ():
            ended.append(_ended(task))
    return key, ended


def _ended(task: Task) -> StateChanged:
    """Run a request and return its outcome. An interruption passes through."""
    try:
        return StateChanged(task.item, "done", run_request(task.request, task.session))
    except Unwritable as error:
        state = "full" if isinstance(error, DiskFull) else "unwritable"
        return StateChanged(task.item, state, text=one_line(error))
    except Unavailable as error:
        return StateChanged(task.item, "skipped", text=one_line(error))
    except (Exception, SystemExit) as error:
        reason = f"{type(error).__name__}: {one_line(error)}"
        return StateChanged(task.item, "failed", text=reason, trace=traceback.format_exc())
