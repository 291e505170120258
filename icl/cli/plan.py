"""What `icl reproduce` will do: what is done already, what is left in which order, how long it may take.

Times come from the records of the same items in the same outputs folder, made by whatever code. Of a figure
they are its drawing and those of its runs that have to be made again. A time at another scale orders the
items but is not added up, since nothing says how the scales compare.
"""

from __future__ import annotations

import importlib
import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icl.cli.report import blanks
from icl.cli.workers import Item
from icl.errors import InputError, Unavailable, nearest, one_line
from icl.report.book import Entry
from icl.runs import documents
from icl.runs.code import todays_digest
from icl.runs.fingerprint import fingerprint
from icl.runs.json_records import complaint

if TYPE_CHECKING:
    from icl.cli.many import Group

GROUPS = ("check", "figure")
_UNKNOWN = 1e9  # seconds: what has never run comes last


@dataclass
class Part:
    """One check or figure of the whole, and as its entry what has become of it so far."""

    item: Item
    entry: Entry
    past: Mapping[str, float] | None = None  # seconds by what took them; None where that is not known
    bulk: float = _UNKNOWN


def parts_of(papers: Sequence[str], scale: str, overrides: Sequence[str], outputs: Path) -> list[Part]:
    """Every check and figure of these papers, or of all; what is found is done. Nothing has run."""
    every = blanks(scale)
    known = sorted({entry.paper for entry in every})
    for paper in papers:
        if paper not in known:
            hint = f"{nearest(str(paper), known)} (one of: {', '.join(known)})"
            raise InputError(f"only={paper}: no such paper{hint}")
    chosen = [entry for entry in every if not papers or entry.paper in papers]
    parts = [Part(Item(entry.group, entry.id, tuple(overrides)), entry) for entry in chosen]
    for part in parts:
        _look(part, scale, outputs)
    return sorted(parts, key=lambda part: (GROUPS.index(part.item.group), part.bulk, part.item.id))


def _look(part: Part, scale: str, outputs: Path) -> None:
    """Whether it is done. What cannot even be planned is a failure like any other."""
    group: Group = importlib.import_module(f"icl.cli.{part.item.group}").GROUP
    try:
        cfg = group.compose(part.item.id, part.item.overrides)
        plan = group.described(cfg, part.item.id)
        document = group.found(plan, cfg)
        if document is None:
            _look_back(part, plan, scale, outputs)
        else:
            part.entry = replace(part.entry, state="done", document=document)
    except Unavailable as error:
        part.entry = replace(part.entry, state="skipped", reason=one_line(error))
    except Exception as error:
        reason = f"{type(error).__name__}: {one_line(error)}"
        part.entry = replace(part.entry, state="failed", reason=reason)


def _look_back(part: Part, plan: Any, scale: str, outputs: Path) -> None:
    """Times of these settings count as known; of any others they only order the parts."""
    folder = outputs / f"{part.item.group}s" / part.item.id
    if part.item.group == "check":
        part.past = _whole(_newest(folder, f"{plan.fingerprint}.json"))
        known = part.past or _whole(_newest(folder, "*.json"))
    else:
        wanted = plan.settings["experiment"]
        part.item = replace(part.item, alike=fingerprint({"experiment": wanted}))
        part.past = _left_of_figure(_newest(folder / scale, "*.json"), outputs)
        known = part.past or _whole(_newest(folder, "*/*.json"))
    if known is not None:
        part.bulk = sum(known.values())
    else:  # the more and the larger numbers are set, the more there is to compute
        part.bulk = _UNKNOWN + sum(math.log1p(abs(number)) for number in _numbers(plan.settings))


def _newest(folder: Path, pattern: str) -> Mapping[str, Any] | None:
    """The document of the last record written there."""
    paths = sorted(folder.glob(pattern), key=lambda path: path.stat().st_mtime)
    record = documents.read_json(paths[-1]) if paths else None
    return None if record is None or complaint(record, None) else record["document"]


def _whole(document: Mapping[str, Any] | None) -> dict[str, float] | None:
    return None if document is None else {"all": document["seconds"]}


def _left_of_figure(document: Mapping[str, Any] | None, outputs: Path) -> dict[str, float] | None:
    """Its drawing, and each of its runs that other code has made."""
    if document is None or "drawing_seconds" not in document:
        return None
    past = {document["figure"]: document["drawing_seconds"]}
    for path in document["runs"]:
        run = documents.read_json(Path(path) / "run.json")
        if run is None:
            return None
        if run["digest"] != todays_digest(run, outputs):
            past[path] = run["seconds"]
    return past


def _numbers(node: Any) -> Iterator[float]:
    if isinstance(node, Mapping | list):
        for entry in node.values() if isinstance(node, Mapping) else node:
            yield from _numbers(entry)
    elif isinstance(node, int | float) and not isinstance(node, bool):
        yield node


def as_text(parts: Sequence[Part], scale: str, outputs: Path, jobs: int) -> str:
    """The plan as text."""
    left = [part for part in parts if part.entry.state == "waiting"]
    done = sum(part.entry.state == "done" for part in parts)
    workers = f" with {jobs} workers" if jobs > 1 else ""
    head = f"reproduce at scale={scale} in {outputs}: {done} of {len(parts)} done already"
    rest = f"{len(left)} to run{workers}, {_minutes(left, jobs)}" if left else "nothing to run"
    lines = [f"{head}, {rest}"]
    for part in parts:
        if part.entry.state in ("failed", "skipped"):
            lines.append(f"  {part.item.group} {part.item.id} {part.entry.state}: {part.entry.reason}")
    for group in GROUPS:
        names = [_name(part) for part in left if part.item.group == group]
        text = f"{group}s: {', '.join(names)}"
        lines += textwrap.wrap(text, 110, initial_indent="  ", subsequent_indent="    ") if names else []
    return "\n".join(lines)


def _name(part: Part) -> str:
    return part.item.id + (f" ({_seconds(sum(part.past.values()))})" if part.past else "")


def _minutes(left: Sequence[Part], jobs: int) -> str:
    """A run that several figures want is made once, and no worker is quicker than the longest item."""
    known = [part for part in left if part.past is not None]
    unknown = len(left) - len(known)
    if not known:
        return "minutes unknown: none of it has run here at this scale"
    all_work: dict[str, float] = {}
    for part in known:
        for name, seconds in (part.past or {}).items():
            all_work[part.item.id if name == "all" else name] = seconds
    longest = max(sum((part.past or {}).values()) for part in known)
    about = _seconds(max(longest, sum(all_work.values()) / jobs))
    rest = f", and {unknown} of unknown length" if unknown else ""
    return f"about {about} by past runs here{rest}"


def _seconds(seconds: float) -> str:
    return f"{seconds / 60:.1f} min" if seconds >= 59.5 else f"{max(seconds, 1):.0f} s"
