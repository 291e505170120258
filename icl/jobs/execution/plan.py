"""The plan of `icl reproduce`: what is done, what remains in which order, and an estimate of the time.

The estimate adds the times of stored records of the same settings made by older code: for a figure, the time
of drawing and of those training runs that must be repeated.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from icl.config.search_path import SCALES
from icl.config.session import Session
from icl.errors import Unavailable, one_line
from icl.events import WorkItem
from icl.jobs.execution.estimate import estimates
from icl.jobs.execution.task import QueuedRequest, task_of
from icl.jobs.requests.figure import FigureRequest
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
    estimated: bool = False  # from a few steps, and not from a past run

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


def estimate_runs(parts: Sequence[PlannedItem], session: Session) -> None:
    """Give each figure that has not run here at this scale the time its runs will take, from a few steps."""
    for part in parts:
        request = None if part.task is None else part.task.request
        if part.entry.state != "waiting" or part.past is not None or not isinstance(request, FigureRequest):
            continue
        try:
            found = estimates(request.missing(session), session)
        except Exception as error:  # a figure that cannot be drawn fails when it is its turn
            session.info(f"{part.item}: no estimate ({type(error).__name__}: {one_line(error)})")
            continue
        part.past = {run.request.identity: run.seconds for run in found}
        part.estimated = True


def most_decided_first(parts: list[PlannedItem], room: float, scale: str, outputs: Path) -> None:
    """Sort the figures: those that fit into `room` seconds first, by the claims they decide in an hour."""

    def turn(part: PlannedItem) -> tuple[int, bool, float]:
        seconds = max(sum(part.past.values()), 1.0) if part.past is not None else float("inf")
        open_claims = _open_claims(str(part.entry.id), scale, outputs)
        is_figure = part.entry.group == "figure"
        return ORDER.index(part.entry.group), is_figure and seconds > room, -open_claims / seconds

    parts.sort(key=turn)


def _open_claims(id: str, scale: str, outputs: Path) -> int:
    """Return how many claims of a figure are undecided at the scale below; 1 where it was not drawn there."""
    below = SCALES[max(SCALES.index(scale) - 1, 0)]
    records = [read_record(path) for path in (outputs / "figures" / id / below).glob("*.json")]
    newest = max((r for r in records if r), key=lambda record: float(record["written"]), default=None)
    if newest is None:
        return 1
    return sum(claim["verdict"] == "undecided" for claim in newest["document"]["claims"])


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
    by = "from a few steps of each run" if any(part.estimated for part in left) else "by past runs here"
    return f"about {about} {by}{rest}"


def _seconds(seconds: float) -> str:
    if seconds >= 3600:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 60:.1f} min" if seconds >= 59.5 else f"{max(seconds, 1):.0f} s"
