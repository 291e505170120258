"""Run every check, then every figure with the training runs it needs, then write the report.

The config folders list the papers; none is named here. Stored results are found first and count as done. A
failure stops nothing else, and each record is stored as soon as it is made: the same call continues after an
interruption.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from icl.config.compose import Composed, compose
from icl.config.search_path import ConfigDirs
from icl.config.session import Session, parse_session
from icl.errors import Unavailable, one_line
from icl.events import Event, Planned, StateChanged, WorkItem
from icl.jobs.execution.run_many import Task, jobs_of, run_many, told
from icl.jobs.requests.parse import parse_named
from icl.jobs.requests.request import Document, state_smoke
from icl.jobs.stored import report
from icl.report.content import ReportEntry

OWN = ("only", "jobs")


@dataclass(frozen=True)
class ReproduceRequest(report.ReportRequest):
    """A reproduction of checks and figures, with `jobs` worker processes (none if 1)."""

    jobs: int = 1


def parse(composed: Composed, configs: ConfigDirs) -> tuple[ReproduceRequest, Session]:
    session, settings = parse_session("reproduce", OWN, composed, configs), composed.settings
    papers, jobs = report.papers_of(settings["only"], configs), jobs_of(settings["jobs"])
    return ReproduceRequest(settings["scale"], papers, jobs), session


def reproduce(request: ReproduceRequest, session: Session) -> Document:
    started = time.monotonic()
    session.info(f"reproduce at scale={request.scale}: looking up stored results")
    blank = report.blank_entries(request, session.configs)
    entries = {WorkItem(one.group, one.id): one for one in blank}
    tasks, ended = _left(entries, request.scale, session)
    done = len(entries) - len(tasks) - len(ended)
    workers = f" with {request.jobs} workers" if min(request.jobs, len(tasks)) > 1 else ""
    session.info(f"{done} of {len(entries)} done already, {len(tasks) or 'nothing'} to run{workers}")
    for event in ended:
        session.info(f"{event.item} {event.state}: {event.text}")
    if tasks:
        state_smoke(request.scale, session)
    session.on_event(Planned(len(entries), len(entries) - len(tasks)))

    def on_event(event: Event) -> None:
        session.on_event(event)
        if isinstance(event, StateChanged) and event.state != "running":
            ended.append(event)

    document: Document = {"report": None}
    try:
        run_many([*tasks.values()], request.jobs, on_event)
    finally:  # also of what an interruption leaves
        for event in ended:
            entries[event.item] = _after(entries[event.item], event, tasks.get(event.item))
        try:
            content = report.report_content([*entries.values()], request, session)
            document["report"] = str(report.write(content, session.outputs))
        except Exception as error:
            reason = f"{type(error).__name__}: {one_line(error)}"
            ended.append(StateChanged(WorkItem("report", "report"), "failed", text=reason))
    for kind in report.SHOWN:
        found = [entry for entry in entries.values() if entry.group == kind.group and entry.document]
        document[kind.plural] = [entry.document for entry in sorted(found, key=lambda entry: entry.id)]
    document |= {"failures": told(ended, "failed", "error"), "skipped": told(ended, "skipped", "reason")}
    return document | {"seconds": time.monotonic() - started}


def _left(
    entries: dict[WorkItem, ReportEntry], scale: str, session: Session
) -> tuple[dict[WorkItem, Task], list[StateChanged]]:
    """Look every check and figure up, and give `entries` what is stored; return what is left to do, and what
    cannot be done: an error here is a failure like any other."""
    overrides = [f"scale={scale}"]
    bases = {kind.group: compose(session.configs, kind.group, overrides) for kind in report.SHOWN}
    tasks, ended = {}, []
    for item, entry in entries.items():
        try:
            request, _ = parse_named(item.kind, item.id, overrides, session.configs, bases[item.kind])
            found = request.lookup(session)
        except Unavailable as error:
            ended.append(StateChanged(item, "skipped", text=one_line(error)))
        except Exception as error:
            ended.append(StateChanged(item, "failed", text=f"{type(error).__name__}: {one_line(error)}"))
        else:
            if found is not None and found.is_answer and not session.force:
                entries[item] = report.with_result(entry, found)
            else:
                tasks[item] = Task(request, session)
    return tasks, ended


def _after(entry: ReportEntry, event: StateChanged, task: Task | None) -> ReportEntry:
    """Return the entry of what has ended so."""
    found = task.request.lookup(task.session) if event.document and task else None
    record = {} if found is None else report.with_result(entry, found).record
    return replace(entry, state=event.state, reason=event.text, document=event.document, record=record)
