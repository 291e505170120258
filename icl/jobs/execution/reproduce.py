"""Run every check, then every figure with the training runs it needs, then write the report.

The config folders list the papers; none is named here. Everything is planned first, and stored results count
as done. The rest runs, the quickest first; a failure stops nothing else. Each record is stored as soon as it
is made, so that the same call continues after an interruption. The report is updated meanwhile.

With `hours`, figures that fit come first, those that decide most in an hour before others; when the time is
over the work stops with its state saved, and what is left is named.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType

from icl.config.compose import Composed
from icl.config.search_path import ConfigDirs
from icl.config.session import Session, parse_session
from icl.errors import Interrupted, one_line
from icl.events import Event, Planned, StateChanged
from icl.jobs.execution.cluster import Cluster, parse_cluster
from icl.jobs.execution.plan import (
    ORDER,
    PlannedItem,
    as_text,
    estimate_runs,
    most_decided_first,
    plan_parts,
)
from icl.jobs.execution.time_limit import TimeLimit, hours_of
from icl.jobs.execution.workers import jobs_of, run_tasks
from icl.jobs.requests.request import Document, state_smoke
from icl.jobs.stored.report import (
    NOT_RUN,
    SHOWN,
    SKIPPED,
    ReportRequest,
    papers_of,
    report_content,
    with_result,
    write,
)
from icl.report.content import ReportEntry
from icl.runs import atomic, documents

OWN = ("only", "jobs", "cluster", "hours")
_PAUSE = 1.0  # seconds between two writings of the report


@dataclass(frozen=True)
class ReproduceRequest(ReportRequest):
    """A reproduction of checks and figures, with `jobs` worker processes (none if 1) or on a cluster."""

    jobs: int = 1
    cluster: Cluster | None = None
    hours: float | None = None  # after which it stops; the same request goes on


def parse(composed: Composed, configs: ConfigDirs) -> tuple[ReproduceRequest, Session]:
    session, settings = parse_session("reproduce", OWN, composed, configs), composed.settings
    papers, cluster = papers_of(settings["only"], configs), parse_cluster(settings["cluster"])
    jobs = jobs_of(settings["jobs"])
    hours = hours_of(settings["hours"])
    return ReproduceRequest(settings["scale"], papers, 1 if cluster else jobs, cluster, hours), session


def reproduce(request: ReproduceRequest, session: Session) -> Document:
    started = time.monotonic()
    session.info(f"reproduce at scale={request.scale}: looking up stored results")
    parts = plan_parts(request, session)
    limit = TimeLimit(request.hours)
    try:
        with limit:
            return _reproduce(parts, request, session, started, limit)
    except Interrupted:
        if not limit.expired:
            raise
    session.info(_over(request))
    return _document([part.entry for part in parts], None, started)


def _reproduce(
    parts: list[PlannedItem], request: ReproduceRequest, session: Session, started: float, limit: TimeLimit
) -> Document:
    if request.scale == "paper":
        estimate_runs(parts, session)
    if request.hours is not None:
        room = request.hours * 3600 * request.jobs
        most_decided_first(parts, room, request.scale, session.outputs)
    session.info(as_text(parts, request.scale, session.outputs, request.jobs))
    if any(part.entry.state == "waiting" for part in parts):
        state_smoke(request.scale, session)
    session.on_event(Planned(len(parts), len(parts) - sum(part.entry.state == "waiting" for part in parts)))
    with ReportUpdater(parts, request, session) as page:
        try:
            _run_parts(parts, request, session, page)
        except Interrupted:
            if not limit.expired:
                raise
            session.info(_over(request))
    _note_skipped([part.entry for part in parts], session.outputs)
    return _document([part.entry for part in parts], page, started)


def _over(request: ReproduceRequest) -> str:
    return f"icl: hours={request.hours:g} are over; the same command goes on"


def _run_parts(
    parts: Sequence[PlannedItem], request: ReproduceRequest, session: Session, page: ReportUpdater
) -> None:
    of_item = {part.item: part for part in parts}

    def on_event(event: Event) -> None:
        session.on_event(event)
        if isinstance(event, StateChanged):
            part = of_item[event.item]
            part.entry = replace(
                part.entry, state=event.state, reason=event.text,
                document=None if event.document is None else dict(event.document),
            )  # fmt: skip
            found = part.task.request.lookup(session) if event.document and part.task else None
            if found is not None:
                part.entry = replace(part.entry, record=with_result(part.entry, found).record)
            page.mark_changed()

    tasks = [part.task for part in parts if part.task and part.entry.state == "waiting"]
    run_tasks(tasks, request.jobs, on_event, request.cluster)


def _note_skipped(entries: Sequence[ReportEntry], outputs: Path) -> None:
    """Store which items were skipped and why, for the report: they have no record."""
    path = outputs / SKIPPED
    before = documents.read_json(path) or {}
    named = {f"{entry.group} {entry.id}": entry for entry in entries}
    reasons = {name: reason for name, reason in before.items() if name not in named}
    reasons |= {name: entry.reason for name, entry in named.items() if entry.state == "skipped"}
    if reasons != before:
        with atomic.writing(outputs):
            path.parent.mkdir(parents=True, exist_ok=True)
            documents.write_json(path, reasons)


def _document(entries: Sequence[ReportEntry], page: ReportUpdater | None, started: float) -> Document:
    entries = sorted(entries, key=lambda entry: entry.id)
    document: Document = {
        kind.plural: [entry.document for entry in entries if entry.group == kind.group and entry.document]
        for kind in SHOWN
    }
    for state, name, why in (("failed", "failures", "error"), ("skipped", "skipped", "reason")):
        found = [entry for entry in entries if entry.state == state]
        document[name] = [{"group": entry.group, "id": entry.id, why: entry.reason} for entry in found]
    if page is not None and page.failure is not None:
        document["failures"].append({"group": "report", "id": "report", "error": page.failure})
    path = None if page is None or page.path is None else str(page.path)
    if left := [str(entry.id) for entry in entries if entry.state in ("waiting", "running")]:
        document["left"] = left  # when the time was over
    return document | {"report": path, "seconds": time.monotonic() - started}


class ReportUpdater:
    """Writes the report at the start, at most once a second while states change, and at the end.

    It has a thread of its own, since one item may take minutes. An error here does not stop the run.
    """

    def __init__(self, parts: Sequence[PlannedItem], request: ReportRequest, session: Session) -> None:
        self.parts, self.request, self.session = parts, request, session
        self.path: Path | None = None
        self.failure: str | None = None
        self._changed, self._over = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._update_until_over, daemon=True)

    def mark_changed(self) -> None:
        self._changed.set()

    def __enter__(self) -> ReportUpdater:
        self._write()
        if self.path is not None:
            self.session.info(f"report: {self.path} (fills while this runs)")
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        for part in self.parts:
            if part.entry.state in ("running", "waiting"):  # interrupted
                part.entry = replace(part.entry, state="waiting", reason=NOT_RUN)
        self._write()

    def _update_until_over(self) -> None:
        pause = _PAUSE
        while not self._over.wait(pause):
            if self._changed.is_set():
                self._changed.clear()
                begun = time.monotonic()
                self._write()
                pause = max(_PAUSE, 5 * (time.monotonic() - begun))

    def _write(self) -> None:
        entries = [part.entry for part in self.parts]
        entries.sort(key=lambda entry: (ORDER.index(entry.group), entry.id))  # whatever ran first
        try:
            content = report_content(entries, self.request, self.session)
            self.path, self.failure = write(content, self.session.outputs), None
        except Exception as error:
            self.failure = f"{type(error).__name__}: {one_line(error)}"
