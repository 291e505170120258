"""`icl reproduce`: every check, then every figure with the runs it draws from, then the report.

What there is, the config folders say; no paper is named here. A plan comes first: what is found again is
done. The rest runs, the cheap and telling first; a failure is kept for the end. Each record is stored as soon
as it is made, so that the same command continues after any interruption; the report shows how far it is.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

from omegaconf import DictConfig

from icl.cli import figure
from icl.cli.display import Display
from icl.cli.hydra_app import config_folders
from icl.cli.logger import logger_settings
from icl.cli.outcome import FAILED, OK, Outcome, verdict_code, worst
from icl.cli.plan import GROUPS, Part, as_text, parts_of
from icl.cli.report import NOT_RUN, SKIPPED, write
from icl.cli.show import show_reproduced
from icl.cli.workers import Event, carry_out
from icl.config import common_settings, keep_caches_in, outputs_folder, plain
from icl.errors import InputError, one_line, whole
from icl.runs import atomic, documents

OWN = ("only", "jobs")
_PAUSE = 1.0  # seconds between two writings of the report


def reproduce_job(cfg: DictConfig) -> Outcome:
    started = time.monotonic()
    parts, outputs = plan_of(cfg), outputs_folder(cfg)
    print(as_text(parts, cfg.scale, outputs, cfg.jobs), file=sys.stderr, flush=True)
    keep_caches_in(outputs)
    with Page(parts, cfg.scale, outputs) as page:
        _run(parts, cfg, page)
    _note_skipped(parts, outputs)
    document = _document(parts, page, started)
    return Outcome(document, _code(document), lambda: show_reproduced(document))


def plan_of(cfg: DictConfig) -> list[Part]:
    """Everything there is to do, in this order; nothing has run or been written."""
    outputs = common_settings(cfg, "reproduce", OWN)
    whole("jobs", cfg.jobs, 1)
    logger_settings(cfg.logger)
    only = plain(cfg.only)
    papers = [only] if isinstance(only, str) else [] if only is None else only
    if not isinstance(papers, list):
        raise InputError(f"only={only}: must be a list of papers")
    overrides = [*figure.passed_on(cfg), f"force={str(cfg.force).lower()}"]
    return parts_of(papers, str(cfg.scale), overrides, outputs)


def _run(parts: Sequence[Part], cfg: DictConfig, page: Page) -> None:
    by_name = {(part.item.group, part.item.id): part for part in parts}
    left = [part.item for part in parts if part.entry.state == "waiting"]
    config_dir = next(map(str, config_folders()[1:]), None)
    with (
        Display(len(parts), len(parts) - len(left), traces=cfg.verbose) as display,
        contextlib.closing(carry_out(left, cfg.jobs, config_dir)) as events,
    ):
        for event in events:
            display.see(event)
            if event.state != "said":
                part = by_name[event.item.group, event.item.id]
                part.entry = _told(part, event)
                page.has_news()


def _note_skipped(parts: Sequence[Part], outputs: Path) -> None:
    """For `icl report`, which finds no record of what was skipped."""
    path = outputs / SKIPPED
    before = documents.read_json(path) or {}
    entries = {f"{part.entry.group} {part.entry.id}": part.entry for part in parts}
    reasons = {name: reason for name, reason in before.items() if name not in entries}
    reasons |= {name: entry.reason for name, entry in entries.items() if entry.state == "skipped"}
    if reasons != before:
        with atomic.writing(outputs):
            path.parent.mkdir(parents=True, exist_ok=True)
            documents.write_json(path, reasons)


def _told(part: Part, event: Event) -> Any:
    return replace(part.entry, state=event.state, document=event.document, reason=event.text)


def _document(parts: Sequence[Part], page: Page, started: float) -> dict[str, Any]:
    entries = sorted((part.entry for part in parts), key=lambda entry: entry.id)
    document: dict[str, Any] = {
        f"{group}s": [entry.document for entry in entries if entry.group == group and entry.document]
        for group in GROUPS
    }
    for state, name, why in (("failed", "failures", "error"), ("skipped", "skipped", "reason")):
        found = [entry for entry in entries if entry.state == state]
        document[name] = [{"group": entry.group, "id": entry.id, why: entry.reason} for entry in found]
    if page.failure is not None:
        document["failures"].append({"group": "report", "id": "report", "error": page.failure})
    return document | {"report": page.path, "seconds": time.monotonic() - started}


def _code(document: dict[str, Any]) -> int:
    codes = [verdict_code(check["verdict"], check["expected"]) for check in document["checks"]]
    codes += map(figure.code_of, document["figures"])
    return worst([OK, *codes, *[FAILED] * len(document["failures"])])


class Page:
    """The report, written at the start, about once a second while there is news, and at the end.

    By a thread of its own, since one item may take minutes. A page that cannot be written stops nothing.
    """

    def __init__(self, parts: Sequence[Part], scale: str, outputs: Path) -> None:
        self.parts, self.scale, self.outputs = parts, scale, outputs
        self.path: Path | None = None
        self.failure: str | None = None
        self._news, self._over = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._keep_up, daemon=True)

    def has_news(self) -> None:
        self._news.set()

    def __enter__(self) -> Page:
        self._write()
        if self.path is not None:
            print(f"report: {self.path} (fills while this runs)", file=sys.stderr, flush=True)
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

    def _keep_up(self) -> None:
        pause = _PAUSE
        while not self._over.wait(pause):
            if self._news.is_set():
                self._news.clear()
                begun = time.monotonic()
                self._write()
                pause = max(_PAUSE, 5 * (time.monotonic() - begun))

    def _write(self) -> None:
        entries = [part.entry for part in self.parts]
        entries.sort(key=lambda entry: (GROUPS.index(entry.group), entry.id))  # whatever ran first
        try:
            self.path, self.failure = write(entries, self.scale, self.outputs), None
        except Exception as error:
            self.failure = f"{type(error).__name__}: {one_line(error)}"
