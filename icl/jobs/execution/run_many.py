"""Run checks and figures one after another in this process, or several at a time by joblib.

A worker of joblib has one thread. If one dies, only its own request fails.
"""

import contextlib
import os
import signal
import sys
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from operator import itemgetter
from typing import Any

from icl.config.compose import compose
from icl.config.search_path import ConfigDirs
from icl.config.session import Session
from icl.errors import InputError, Unavailable, nearest, one_line, whole
from icl.jobs.execution.memory import available_bytes
from icl.jobs.execution.worker_signals import in_worker, stay, workers_first
from icl.jobs.requests.parse import parse_named
from icl.jobs.requests.request import Document, Request, lookup_or_validate, run_request
from icl.jobs.stored.report_content import SHOWN, ReportRequest, blank_entries, build_report
from icl.progress import Event, Planned, StateChanged, WorkItem, quiet
from icl.runs.atomic import Unwritable

_BYTES = 1.5e9  # of a worker at scale=laptop: torch, and the runs of a figure


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
    requests, ended = _left(ids, overrides, session, one_stops_all)
    count = sum(map(len, ids.values()))
    workers = f" with {jobs} workers" if min(jobs, len(requests)) > 1 else ""
    done = sum(event.state == "done" for event in ended)
    session.info(f"{done} of {count} done already, {len(requests) or 'nothing'} to run{workers}")
    session.on_event(Planned(count, len(ended)))

    def on_event(event: Event) -> None:
        session.on_event(event)
        if isinstance(event, StateChanged) and event.state != "running":
            ended.append(event)

    run_many(requests, replace(session, on_event=on_event), jobs)
    made = [dict(event.document) for event in ended if event.document]
    documents = {f"{k}s": sorted((d for d in made if k in d), key=itemgetter(k)) for k in ids}
    failed, skipped = _told(ended, "failed", "error"), _told(ended, "skipped", "reason")
    return {**documents, "failures": failed, "skipped": skipped, "seconds": time.monotonic() - started}


def reproduce(request: ReportRequest, session: Session) -> Document:
    """Run every check, then every figure with the runs it needs, then write the report. A failure stops
    nothing else, and the same call continues after an interruption."""
    started, jobs = time.monotonic(), worker_count(request.jobs)
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
) -> tuple[list[Request], list[StateChanged]]:
    """Return what is left to do, and what has ended before it begins."""
    left, ended = [], []
    for kind, names in ids.items():
        base = compose(session.configs, kind, overrides)
        for name in names:
            item = WorkItem(kind, name)
            document = None
            try:
                request, _ = parse_named(kind, name, overrides, session.configs, base)
                with contextlib.suppress(Unavailable):  # reported when it runs
                    document = lookup_or_validate(request, session, validates=one_stops_all)
            except Exception as error:
                if one_stops_all:
                    raise
                ended.append(_failed(item, error))
            else:
                if document is None:
                    left.append(request)
                else:
                    ended.append(StateChanged(item, "done", document))
    return left, ended


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
    from joblib import cpu_count  # knows affinity, and limits of a container

    return max(1, min(cpu_count(), int(available_bytes() / _BYTES)))


def run_many(requests: Sequence[Request], session: Session, jobs: int) -> None:
    """Run every request once, and tell the session's listener; those that need the same runs are run one
    after another."""
    groups: dict[Any, list[Request]] = {}
    for number, request in enumerate(requests):
        groups.setdefault(getattr(request, "runs_key", number), []).append(request)
    if min(jobs, len(requests)) > 1:
        _in_workers(list(groups.values()), session, jobs)
        return
    for request in requests:
        session.on_event(StateChanged(_item(request), "running"))
        session.on_event(_ended(request, session))


def _in_workers(waiting: list[list[Request]], session: Session, jobs: int) -> None:
    """Run groups of requests. Those under way when a worker died are run again, each alone: which of them it
    was, is not known."""
    with workers_first() as signals:
        while waiting and not signals:
            under_way = _until_one_dies(waiting, session, jobs, signals)
            for request in (request for group in under_way for request in group):
                if _until_one_dies([[request]], session, jobs, signals) and not signals:
                    session.on_event(StateChanged(_item(request), "failed", text="its process died"))


def _until_one_dies(
    waiting: list[list[Request]], session: Session, jobs: int, signals: Sequence[int]
) -> list[list[Request]]:
    """Run groups, taken off `waiting`, until there are none or a worker dies; return those under way then."""
    from joblib import Parallel, delayed, parallel_config

    under_way: dict[int, list[Request]] = {}
    there = replace(session, on_event=quiet)  # the listener stays in this process

    def calls() -> Iterator[Any]:
        while waiting and not signals:
            number, group = len(waiting), waiting.pop(0)
            under_way[number] = group
            for request in group:
                session.on_event(StateChanged(_item(request), "running"))
            bare = [replace(request) for request in group]  # without what was built for validation
            yield delayed(_work)(number, bare, there, os.getpid())

    jobs = max(2, min(jobs, len(waiting)))  # one alone would be run in this process
    try:
        with parallel_config("loky", inner_max_num_threads=1, initializer=_begin, initargs=(sys.path[:],)):
            parallel = Parallel(jobs, return_as="generator_unordered", pre_dispatch=jobs, batch_size=1)
            for number, ended in parallel(calls()):
                under_way.pop(number)
                for event in ended:
                    session.on_event(event)
    except BrokenProcessPool:
        pass
    return list(under_way.values())


def _begin(path: list[str]) -> None:
    """Begin a worker: it imports as its starter does, which ends it when it is idle."""
    sys.path[:] = path
    signal.signal(signal.SIGTERM, stay)


def _work(
    number: int, requests: Sequence[Request], session: Session, starter: int
) -> tuple[int, list[StateChanged]]:
    """Run requests one after another in a worker, up to an interruption."""
    ended = []
    with in_worker(starter) as begins:
        for request in requests if begins else ():
            ended.append(_ended(request, session))
    return number, ended


def _item(request: Request) -> WorkItem:
    return WorkItem(request.kind, request.id)


def _ended(request: Request, session: Session) -> StateChanged:
    """Run a request and return its outcome. An interruption passes through, and what the next request would
    meet, too."""
    try:
        return StateChanged(_item(request), "done", run_request(request, session))
    except Unwritable:
        raise
    except (Exception, SystemExit) as error:
        return _failed(_item(request), error)


def _failed(item: WorkItem, error: BaseException) -> StateChanged:
    if isinstance(error, Unavailable):
        return StateChanged(item, "skipped", text=one_line(error))
    reason = f"{type(error).__name__}: {one_line(error)}"
    return StateChanged(item, "failed", text=reason, trace="".join(traceback.format_exception(error)))
