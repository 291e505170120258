"""The page of what is stored at one scale. Nothing is measured or drawn, and no check is imported."""

import datetime
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from icl import catalog
from icl.config.compose import Composed, compose
from icl.config.search_path import ConfigDirs
from icl.config.session import Session, parse_session
from icl.errors import InputError, one_line, one_of
from icl.jobs.requests.figure import with_current_paths
from icl.jobs.requests.parse import parse_named
from icl.jobs.requests.request import Document, StoredResult
from icl.report.entries import Paper, ReportContent, ReportEntry, paper_of
from icl.runs import atomic, layout
from icl.runs.code import current_digest
from icl.runs.documents import read_record
from icl.runs.json_records import invalid_reason, read
from icl.runs.provenance import provenance

OWN = {"report": ("only",), "reproduce": ("only", "jobs")}
SHOWN = ("check", "figure")


@dataclass(frozen=True)
class ReportRequest:
    """The papers shown, all where `only` is empty; `jobs` at a time are reproduced."""

    scale: str
    only: tuple[str, ...] = ()
    jobs: Any = None


def parse(verb: str, composed: Composed, configs: ConfigDirs) -> tuple[ReportRequest, Session]:
    """Parse what is to be shown, or reproduced and shown."""
    session, settings = parse_session(verb, OWN[verb], composed, configs), composed.settings
    only = settings["only"]
    listed = [only] if isinstance(only, str) else only
    if not isinstance(listed, list):
        raise InputError(f"only={only}: must be a list of papers")
    every = [entry for group in SHOWN for entry in catalog.entries(group, configs)]
    known = sorted({entry.paper for entry in every})
    papers = tuple(one_of("only", paper, known) for paper in listed)
    return ReportRequest(settings["scale"], papers, settings.get("jobs")), session


def build_report(request: ReportRequest, session: Session) -> Document:
    """Write the page of all that is stored at this scale; return its document."""
    from icl.report.page import summary, write_report

    started, content = time.monotonic(), content_of(request, session)
    with atomic.writing(session.outputs):  # SCALE.html, and the same as index.html
        document: Document = {"report": str(write_report(session.outputs / "report", content))}
    for group in SHOWN:
        done = [e for e in content.entries if e.group == group and e.document is not None]
        document[f"{group}s"] = len(done)
    return document | {"summary": summary(content), "seconds": time.monotonic() - started}


def content_of(request: ReportRequest, session: Session) -> ReportContent:
    """Return what the page shows."""
    overrides = [f"scale={request.scale}"]
    bases = {group: compose(session.configs, group, overrides) for group in SHOWN}
    blank = blank_entries(request, session.configs)
    entries = [_find_result(entry, overrides, bases[entry.group], session) for entry in blank]
    about = {**provenance(), "written": _time(time.time())}  # of the page itself
    described = [paper(id, session.configs) for id in dict.fromkeys(entry.paper for entry in entries)]
    mine = _mine(entries, request, session)
    return ReportContent(request.scale, described, entries, about, request.only, mine)


def blank_entries(request: ReportRequest, configs: ConfigDirs) -> list[ReportEntry]:
    """Return every check and figure, shipped or the user's own, as one that has not run."""
    every = [(group, item) for group in SHOWN for item in catalog.entries(group, configs)]
    chosen = [(group, item) for group, item in every if not request.only or item.paper in request.only]
    shared = [folder for folder in configs.folders if folder != configs.user]
    found = []
    for group, item in chosen:
        words = ["icl", group, item.id, f"scale={request.scale}"]
        if not any((one / group / f"{item.id}.yaml").is_file() for one in shared):  # the user's own
            words[2:2] = ["--config-dir", str(configs.user)]
        about = {name: getattr(item, name) for name in ("formula", "title", "origin")}
        found.append(ReportEntry(group, item.id, item.paper, item.reference, shlex.join(words), **about))
    return found


def _mine(entries: Sequence[ReportEntry], request: ReportRequest, session: Session) -> list[ReportEntry]:
    """Return what is stored at settings that were typed, and of users' files; the newest first."""
    shown = {entry.record.get("fingerprint") for entry in entries}
    known = {(entry.group, entry.id): entry for entry in entries}
    places = ("checks/**/*.json", f"figures/*/*/{request.scale}/*/{layout.FIGURE}")
    paths = [path for place in places for path in session.outputs.glob(place)]
    records = [(record, path) for path in paths if (record := read(path))]
    found: list[ReportEntry] = []
    for record, path in sorted(records, key=lambda pair: -pair[0]["written"]):
        document, group = record["document"], str(record["kind"]).removesuffix("s")
        typed, name = document.get("typed") or [], document[group]
        entry, is_shipped = known.get((group, name)), typed[:1] == [f"{group}={name}"]
        if record["fingerprint"] in shown or not typed[is_shipped:] or (is_shipped and entry is None):
            continue  # as shipped, or of another paper than those asked for
        today = None if session.uses_stale else current_digest(record, session.outputs)
        stale = invalid_reason(record, today) or ""
        if stale and entry is None and any(one.id == name for one in found):
            continue  # of an older version of the file
        if group == "figure":
            document = with_current_paths(document, path.parent, session.outputs)
        entry = entry or ReportEntry(
            group, name, "", document["reference"], "icl check", title=document["title"]
        )
        words = entry.command.removesuffix(f" scale={request.scale}" if group == "check" else "")
        mine = replace(entry, is_mine=True, command=f"{words} {shlex.join(typed[is_shipped:])}")
        found.append(with_result(mine, StoredResult(document, path, record, stale)))
    return found


def with_result(entry: ReportEntry, found: StoredResult) -> ReportEntry:
    """Return the entry with what is stored for it."""
    runs = [read_record(Path(run) / "run.json") or {} for run in found.document.get("runs") or []]
    settings = found.document.get("settings") or {}
    seeds = [settings["seed"]] if "seed" in settings else [s for run in runs for s in run.get("seeds", [])]
    about = {
        "path": str(found.path),
        "fingerprint": found.record.get("fingerprint"),
        "date": _time(found.record.get("written") or found.path.stat().st_mtime),
        "provenance": found.record.get("provenance"),
        "seeds": list(dict.fromkeys(seeds)),
        "training_seconds": sum(run.get("seconds") or 0.0 for run in runs) if runs else None,
    }
    state = "stale" if found.stale else "done"
    return replace(entry, state=state, reason=found.stale, document=found.document, record=about)


def _find_result(
    entry: ReportEntry, overrides: Sequence[str], base: Composed, session: Session
) -> ReportEntry:
    """Return the entry with its record at this scale, if there is one, current or stale."""
    if any(catalog.stored(session.outputs, entry.group, entry.id)):
        try:
            request, _ = parse_named(entry.group, entry.id, overrides, session.configs, base)
            found = request.lookup(session)
        except InputError as error:  # a config that cannot be composed does not hide the others
            return replace(entry, state="failed", reason=str(error))
        if found is not None:
            return with_result(entry, found)
    return entry


def paper(id: str, configs: ConfigDirs) -> Paper:
    """Return what conf/paper/ID.yaml says; a paper without one is its id."""
    text = configs.text("paper", id)
    try:
        return paper_of(id, **(yaml.safe_load(text) if text else {"title": id}))
    except (yaml.YAMLError, TypeError) as error:
        may = "must have title, and may have citation, link, terms, highlights"
        raise InputError(f"paper/{id}.yaml: {may} ({one_line(error)})") from None


def _time(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
