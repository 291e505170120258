"""The plan of `icl reproduce`: what is done, what remains in which order, and an estimate of the time.

The estimate adds the times of stored records of the same settings made by older code: for a figure, the time
of drawing and of those training runs that must be repeated.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from icl.config.session import Session
from icl.errors import Unavailable, one_line
from icl.events import WorkItem
from icl.jobs.execution.task import QueuedRequest, task_of
from icl.jobs.requests.parse import parse_named
from icl.jobs.requests.request import Found
from icl.jobs.stored.report import SHOWN, ReportRequest, blank_entries, with_result
from icl.report.content import ReportEntry
from icl.runs.code import current_digest
from icl.runs.documents import read_record

ORDER = tuple(kind.group for kind in SHOWN)


@dataclass
class PlannedItem:
    """One check or figure; `entry` holds its state and result."""

    entry: ReportEntry
    task: QueuedRequest | None = None  # None where its config is invalid
    past: Mapping[str, float] | None = None  # seconds by item and run; None if unknown

    @property
    def item(self) -> WorkItem:
        return WorkItem(self.entry.group, self.entry.id)


def plan_parts(request: ReportRequest, session: Session) -> list[PlannedItem]:
    """Plan every check and figure of the requested papers; a stored result counts as done."""
    parts = [_part(entry, request.scale, session) for entry in blank_entries(request, session.configs)]

    def turn(part: PlannedItem) -> tuple[int, float, str]:
        seconds = float("inf") if part.past is None else sum(part.past.values())
        return ORDER.index(part.entry.group), seconds, part.entry.id

    return sorted(parts, key=turn)


def _part(entry: ReportEntry, scale: str, session: Session) -> PlannedItem:
    """Plan one check or figure; an error here is a failure like any other."""
    try:
        request, _ = parse_named(entry.group, entry.id, [f"scale={scale}"], session.configs)
        task = task_of(request, session)
        found = request.lookup(session)
    except Unavailable as error:
        return PlannedItem(replace(entry, state="skipped", reason=one_line(error)))
    except Exception as error:
        return PlannedItem(
            replace(entry, state="failed", reason=f"{type(error).__name__}: {one_line(error)}")
        )
    if found is None:
        return PlannedItem(entry, task)
    if session.force or not found.is_answer:
        return PlannedItem(entry, task, _past(entry, found, session.outputs))
    return PlannedItem(with_result(entry, found), task)


def _past(entry: ReportEntry, found: Found, outputs: Path) -> dict[str, float]:
    if entry.group == "check":
        return {str(entry.id): found.document["seconds"]}
    past = {str(entry.id): found.document["drawing_seconds"]}
    for place in found.document["runs"]:
        run = read_record(Path(place) / "run.json") or {}
        if run.get("digest") != current_digest(run, outputs):
            past[place] = run.get("seconds", 0.0)
    return past


def as_text(parts: Sequence[PlannedItem], scale: str, outputs: Path, jobs: int) -> str:
    """Return the plan as text."""
    left = [part for part in parts if part.entry.state == "waiting"]
    done = sum(part.entry.state == "done" for part in parts)
    jobs = min(jobs, max(len(left), 1))
    workers = f" with {jobs} workers" if jobs > 1 else ""
    head = f"reproduce at scale={scale} in {outputs}: {done} of {len(parts)} done already"
    rest = f"{len(left)} to run{workers}, {_minutes(left, jobs)}" if left else "nothing to run"
    lines = [f"{head}, {rest}"]
    for part in parts:
        if part.entry.state in ("failed", "skipped"):
            lines.append(f"  {part.item} {part.entry.state}: {part.entry.reason}")
    for kind in SHOWN:
        names = [_name(part) for part in left if part.entry.group == kind.group]
        text = f"{kind.plural}: {', '.join(names)}"
        lines += textwrap.wrap(text, 110, initial_indent="  ", subsequent_indent="    ") if names else []
    return "\n".join(lines)


def _name(part: PlannedItem) -> str:
    return part.entry.id + (f" ({_seconds(sum(part.past.values()))})" if part.past else "")


def _minutes(left: Sequence[PlannedItem], jobs: int) -> str:
    """Return an estimate of the time: shared runs count once, and it is at least that of the longest item."""
    known = [part.past for part in left if part.past is not None]
    if not known:
        return "time unknown: none of it has run here at this scale"
    all_work = {name: seconds for past in known for name, seconds in past.items()}
    longest = max(sum(past.values()) for past in known)
    about = _seconds(max(longest, sum(all_work.values()) / jobs))
    rest = f", and {len(left) - len(known)} of unknown length" if len(known) < len(left) else ""
    return f"about {about} by past runs here{rest}"


def _seconds(seconds: float) -> str:
    return f"{seconds / 60:.1f} min" if seconds >= 59.5 else f"{max(seconds, 1):.0f} s"
