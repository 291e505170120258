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
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

from icl.config.compose import Composed, compose
from icl.config.search_path import ConfigDirs
from icl.config.session import Session, parse_session
from icl.errors import InputError, Unavailable, nearest, one_line, whole
from icl.jobs.execution.interruption import in_worker, stay, workers_first
from icl.jobs.execution.memory import available_bytes
from icl.jobs.requests.parse import parse_named
from icl.jobs.requests.request import Document, Request, lookup_or_validate, run_request
from icl.jobs.stored.report import SHOWN, ReportRequest, blank_entries, build_report, papers_of
from icl.progress import Event, Listener, Planned, StateChanged, WorkItem, quiet
from icl.runs.atomic import Unwritable

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
    ids: Mapping[str, Sequence[str]],
    overrides: Sequence[str],
    session: Session,
    jobs: int,
    *,
    one_stops_all: bool = True,
) -> Document:
    """Run checks and figures, given by their kind, each as configured; `overrides` apply to each. What is
    stored is found first. All are validated before the first starts or, unless `one_stops_all`, each fails by
    itself."""
    started = time.monotonic()
    tasks, ended = _left(ids, overrides, session, one_stops_all)
    count = sum(map(len, ids.values()))
    workers = f" with {jobs} workers" if min(jobs, len(tasks)) > 1 else ""
    done = sum(event.state == "done" for event in ended)
    session.info(f"{done} of {count} done already, {len(tasks) or 'nothing'} to run{workers}")
    session.on_event(Planned(count, len(ended)))

    def on_event(event: Event) -> None:
        session.on_event(event)
        if isinstance(event, StateChanged) and event.state != "running":
            ended.append(event)

    run_many(tasks, jobs, on_event)
    made = [dict(event.document) for event in ended if event.document]
    documents = {f"{k}s": sorted((d for d in made if k in d), key=itemgetter(k)) for k in ids}
    failed, skipped = _told(ended, "failed", "error"), _told(ended, "skipped", "reason")
    return {**documents, "failures": failed, "skipped": skipped, "seconds": time.monotonic() - started}


def parse_reproduce(composed: Composed, configs: ConfigDirs) -> tuple[tuple[ReportRequest, int], Session]:
    """Return what the page will be of, the number of worker processes (none if 1), and the session."""
    session, settings = parse_session("reproduce", ("only", "jobs"), composed, configs), composed.settings
    papers, jobs = papers_of(settings["only"], configs), worker_count(settings["jobs"])
    return (ReportRequest(settings["scale"], papers), jobs), session


def reproduce(asked: tuple[ReportRequest, int], session: Session) -> Document:
    """Run every check, then every figure with the runs it needs, then write the report. A failure stops
    nothing else, and the same call continues after an interruption."""
    (request, jobs), started = asked, time.monotonic()
    session.info(f"reproduce at scale={request.scale}: looking up stored results")
    entries, failures, page = blank_entries(request, session.configs), [], None
    ids = {group: [one.id for one in entries if one.group == group] for group in SHOWN}
    try:
        found = run_all(ids, [f"scale={request.scale}"], session, jobs, one_stops_all=False)
    finally:  # also of what an interruption leaves
        try:
            page = build_report(request, session)["report"]
        except Exception as error:
            reason = f"{type(error).__name__}: {one_line(error)}"
            failures.append({"group": "report", "id": "report", "error": reason})
    failures = [*found["failures"], *failures]
    return {**found, "report": page, "failures": failures, "seconds": time.monotonic() - started}


def _left(
    ids: Mapping[str, Sequence[str]], overrides: Sequence[str], session: Session, one_stops_all: bool
) -> tuple[list[Task], list[StateChanged]]:
    """Return what is left to do, and what has ended before it begins."""
    tasks, ended = [], []
    for kind, names in ids.items():
        base = compose(session.configs, kind, overrides)
        for name in names:
            item = WorkItem(kind, name)
            try:
                request, _ = parse_named(kind, name, overrides, session.configs, base)
                found = None if session.force else request.lookup(session)
                known = found is not None and found.is_answer
                if one_stops_all and not known:
                    with contextlib.suppress(Unavailable):  # reported when the task runs
                        lookup_or_validate(request, session)
            except Exception as error:
                if one_stops_all:
                    raise
                ended.append(_failed(item, error))
            else:
                if found is not None and known:
                    ended.append(StateChanged(item, "done", found.document))
                else:
                    tasks.append(Task(request, session))
    return tasks, ended


def _told(events: Sequence[StateChanged], state: str, why: str) -> list[dict[str, str]]:
    """Return what has ended so, by name, and why."""
    found = [event for event in events if event.state == state]
    rows = [{"group": event.item.kind, "id": event.item.id, why: event.text} for event in found]
    return sorted(rows, key=lambda row: row["id"])


def ids_of(kind: str, which: str, configs: ConfigDirs) -> list[str]:
    """Return the checks or figures that `all` or PAPER/all names."""
    known = configs.options(kind)
    ids = [name for name in known if name.startswith(which.removesuffix("all"))]
    if not ids:
        papers = sorted({f"{name.partition('/')[0]}/all" for name in known})
        hint = f" (one of: all, {', '.join(papers)}){nearest(which, papers)}"
        raise InputError(f"{kind}={which}: no such {kind}s{hint}")
    return ids


def worker_count(given: Any) -> int:
    """Return `jobs`; where it is null, the number of usable cores, as far as there is memory."""
    if given is not None:
        return whole("jobs", given, 1)
    if multiprocessing.current_process().daemon:  # may start no process
        return 1
    from joblib import cpu_count  # knows affinity, and limits of a container

    return max(1, min(cpu_count(), int(available_bytes() / _BYTES)))


def run_many(tasks: Sequence[Task], jobs: int, on_event: Listener) -> None:
    """Run every task once; those that need the same runs one after another."""
    if min(jobs, len(tasks)) > 1:
        _in_workers(tasks, jobs, on_event)
        return
    for task in tasks:
        on_event(StateChanged(task.item, "running"))
        on_event(_ended(replace(task, session=replace(task.session, on_event=on_event))))


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
    signal.signal(signal.SIGTERM, stay)


def _work(key: Any, tasks: Sequence[Task], starter: int) -> tuple[Any, list[StateChanged]]:
    """Run tasks one after another in a worker, up to an interruption."""
    ended = []
    with in_worker(starter) as begins:
        for task in tasks if begins else ():
            ended.append(_ended(task))
    return key, ended


def _ended(task: Task) -> StateChanged:
    """Run a request and return its outcome. An interruption passes through, and what the next request would
    meet, too."""
    try:
        return StateChanged(task.item, "done", run_request(task.request, task.session))
    except Unwritable:
        raise
    except (Exception, SystemExit) as error:
        return _failed(task.item, error)


def _failed(item: WorkItem, error: BaseException) -> StateChanged:
    if isinstance(error, Unavailable):
        return StateChanged(item, "skipped", text=one_line(error))
    reason = f"{type(error).__name__}: {one_line(error)}"
    return StateChanged(item, "failed", text=reason, trace="".join(traceback.format_exception(error)))
