"""The page of what is stored at one scale. Nothing is measured or drawn, and no check is imported."""

from __future__ import annotations

import datetime
import os
import shlex
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from icl.config.compose import Composed
from icl.config.search_path import ConfigDirs
from icl.config.session import Session, parse_session
from icl.errors import InputError, one_line
from icl.jobs.requests.parse import parse_named
from icl.jobs.requests.request import Document, Found
from icl.jobs.stored import catalog, stored_runs
from icl.report.content import ClosedForm, Highlight, Paper, ReportContent, ReportEntry, Term
from icl.runs import atomic
from icl.runs.documents import read_json
from icl.runs.provenance import provenance

OWN = ("only", "wandb")
SKIPPED = "cache/skipped.json"  # {"figure ID": why the last reproduce skipped it}
NOT_RUN = "not run"
SHOWN = tuple(kind for kind in catalog.KINDS if kind.group != "experiment")


@dataclass(frozen=True)
class ReportRequest:
    """The papers shown, all where `only` is empty; with `wandb` in a Report of W&B's, too."""

    scale: str
    only: tuple[str, ...] = ()
    wandb: bool = field(default=False, kw_only=True)


def parse(composed: Composed, configs: ConfigDirs) -> tuple[ReportRequest, Session]:
    session, settings = parse_session("report", OWN, composed, configs), composed.settings
    only, wandb = papers_of(settings["only"], configs), settings["wandb"]
    if not isinstance(wandb, bool):
        raise InputError(f"wandb={wandb}: must be true or false")
    return ReportRequest(settings["scale"], only, wandb=wandb), session


def papers_of(only: Any, configs: ConfigDirs) -> tuple[str, ...]:
    """`only` as a tuple of papers that there are."""
    listed = [only] if isinstance(only, str) else only
    if not isinstance(listed, list):
        raise InputError(f"only={only}: must be a list of papers")
    catalog.validate_papers(listed, configs)
    return tuple(listed)


def build_report(request: ReportRequest, session: Session) -> tuple[Document, ReportContent]:
    """Write the page, and the Report where it is requested; return its document and content."""
    started = time.monotonic()
    online = _online(request, session) if request.wandb else None  # refused before anything is written
    content = stored_content(request, session)
    shown = {
        kind.plural: sum(e.group == kind.group and e.document is not None for e in content.entries)
        for kind in SHOWN
    }
    path = write(content, session.outputs)
    document: Document = {"report": str(path), **shown}
    if online is not None:
        from icl.loggers.wandb_report import saved

        document["wandb"] = saved(online, session.outputs)
    return document | {"seconds": time.monotonic() - started}, content


def stored_content(request: ReportRequest, session: Session) -> ReportContent:
    """Return all that is stored at this scale."""
    entries = [_find_result(e, request.scale, session) for e in blank_entries(request, session.configs)]
    return report_content(entries, request, session)


def _online(request: ReportRequest, session: Session) -> Any:
    from icl.loggers.wandb_report import drafted

    figures: dict[str, list[str]] = {}
    for entry in blank_entries(request, session.configs):
        figures.setdefault(entry.paper, []).extend([entry.id] if entry.group == "figure" else [])
    return drafted(session.logger, session.outputs, request.scale, figures)


def blank_entries(request: ReportRequest, configs: ConfigDirs) -> list[ReportEntry]:
    """Return every check and figure, shipped or the user's own, as one that has not run."""
    every = [(kind.group, item) for kind in SHOWN for item in catalog.entries(kind.group, configs)]
    chosen = [(group, item) for group, item in every if not request.only or item.paper in request.only]
    return [_blank(group, item, request.scale, configs) for group, item in chosen]


def report_content(entries: Sequence[ReportEntry], request: ReportRequest, session: Session) -> ReportContent:
    """`entries` with their papers, what was trained here, and the provenance of the page itself."""
    sweeps = stored_runs.stored_sweeps_for_report(session.outputs)
    members = {place for sweep in sweeps for place in sweep.members}
    runs, more, of_figures = stored_runs.stored_runs_for_report(session.outputs, members)
    return ReportContent(
        request.scale,
        papers((e.paper for e in entries), session.configs),
        entries,
        {**provenance(), "written": _time(time.time())},
        request.only,
        runs,
        more,
        of_figures,
        sweeps,
    )


def write(content: ReportContent, outputs: Path) -> Path:
    """OUTPUTS/report/SCALE.html, and index.html beside it: the page of the scale that has decided most."""
    from icl.report.page import write_report

    with atomic.writing(outputs):
        return write_report(outputs / "report", content)


def papers(ids: Iterable[str], configs: ConfigDirs) -> list[Paper]:
    """Titles and links from conf/paper/ID.yaml, the user's folder first; a paper without one is its id."""
    return [_paper(id, configs) for id in dict.fromkeys(ids)]


def with_result(entry: ReportEntry, found: Found) -> ReportEntry:
    """Return the entry with what is stored for it."""
    runs = [read_json(Path(run) / "run.json") or {} for run in found.document.get("runs") or []]
    settings = found.document.get("settings") or {}
    seeds = [settings["seed"]] if "seed" in settings else [s for run in runs for s in run.get("seeds", [])]
    about = {
        "fingerprint": found.record.get("fingerprint"),
        "date": _time(found.record.get("written") or found.path.stat().st_mtime),
        "provenance": found.record.get("provenance"),
        "seeds": list(dict.fromkeys(seeds)),
        "training_seconds": sum(run.get("seconds") or 0.0 for run in runs) if runs else None,
    }
    state = "stale" if found.stale else "done"
    return replace(entry, state=state, reason=found.stale, document=found.document, record=about)


def _find_result(entry: ReportEntry, scale: str, session: Session) -> ReportEntry:
    """Return the entry with its record at this scale, if there is one, current or stale."""
    kind = next(kind for kind in SHOWN if kind.group == entry.group)
    if catalog.has_result(session.outputs, kind, entry.id):  # to compose settings takes the most time
        try:
            request, _ = parse_named(entry.group, entry.id, [f"scale={scale}"], session.configs)
            found = request.lookup(session)
        except InputError as error:  # a config that cannot be composed does not hide the others
            return replace(entry, state="failed", reason=str(error))
        if found is not None:
            return with_result(entry, found)
    skipped = (read_json(session.outputs / SKIPPED) or {}).get(f"{entry.group} {entry.id}")
    return replace(entry, state="skipped", reason=skipped) if skipped else replace(entry, reason=NOT_RUN)


def _blank(group: str, item: catalog.CatalogEntry, scale: str, configs: ConfigDirs) -> ReportEntry:
    words = ["icl", group, f"{group}={item.id}", f"scale={scale}"]
    given, folder = "", ""
    shared = [folder for folder in configs.folders if folder != configs.user]
    if not any((folder / group / f"{item.id}.yaml").is_file() for folder in shared):  # the user's own
        words[2:2] = ["--config-dir", str(configs.user)]
        folder = f", config_dir={str(configs.user)!r}"
        given = os.environ.get("ICL_PACKAGES", "")
    command = f"{f'ICL_PACKAGES={shlex.quote(given)} ' if given else ''}{shlex.join(words)}"
    python = f'icl.{group}("{item.id}", scale="{scale}"{folder})'
    return ReportEntry(
        group,
        item.id,
        item.paper,
        item.reference,
        command,
        formula=item.formula,
        python=python,
        title=item.title,
        origin=item.origin,
        quote=item.quote,
    )


def _paper(id: str, configs: ConfigDirs) -> Paper:
    for folder in reversed(configs.folders):
        path = folder / "paper" / f"{id}.yaml"
        if path.is_file():
            try:
                return _parse_paper(id, yaml.safe_load(path.read_text(encoding="utf-8")))
            except (yaml.YAMLError, AttributeError, TypeError) as error:
                complaint = (
                    f"{path}: must have title, and may have citation, link, terms, highlights, closed_forms"
                )
                raise InputError(f"{complaint} ({one_line(error)})") from None
    return Paper(id, id)


def _parse_paper(id: str, config: dict[str, Any]) -> Paper:
    parts = {"terms": Term, "highlights": Highlight, "closed_forms": ClosedForm}
    found = {name: [kind(**part) for part in config.pop(name, None) or []] for name, kind in parts.items()}
    return Paper(id, **{key: str(value) for key, value in config.items()}, **found)  # type: ignore[arg-type]


def _time(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
