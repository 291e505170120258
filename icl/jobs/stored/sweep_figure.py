"""A picture of a sweep: `icl figure figure=sweep sweep=PATH x=optimizer.lr y=exact_risk hue=model.layers`."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from icl.config.compose import Composed
from icl.config.search_path import ConfigDirs
from icl.config.session import Session
from icl.errors import InputError, nearest
from icl.jobs.requests.request import Document
from icl.jobs.stored import sweep_status
from icl.jobs.stored.run_names import grouped
from icl.loggers.logged_once import DocumentLogger
from icl.loggers.run_log import DocumentLog, model_of
from icl.look import KEYS, Look, drawn_as
from icl.runs import atomic, documents
from icl.runs.code import current_digest
from icl.runs.fingerprint import fingerprint
from icl.runs.record import RunRecord
from icl.runs.sweeps import StoredSweep


@dataclass(frozen=True)
class SweptFigure:
    stored: StoredSweep
    axes: tuple[str, str, str | None]
    scale: str
    look: Look
    best_by: tuple[str, ...] = ()


def parse(composed: Composed, configs: ConfigDirs) -> tuple[SweptFigure, Session]:
    status, session = sweep_status.parse(composed, configs, drawn=True)
    keys = status.stored.keys
    if not keys:
        raise InputError("x: this sweep has no swept key but its seeds")
    settings = composed.settings
    for name in ("x", "y", "hue"):
        if not isinstance(settings[name], str | None):
            raise InputError(f"{name}={settings[name]}: must be the name of a swept key or a metric")
    x = settings["x"] or (keys[0] if len(keys) == 1 else None)
    if x is None:
        raise InputError(f"x: must be one of {', '.join(keys)}")
    axes = (x, settings["y"], settings["hue"])
    return SweptFigure(
        status.stored, axes, settings["scale"], _look(settings["figure"]), status.best_by
    ), session


def _look(node: Any) -> Look:
    unknown = sorted(set(node) - set(KEYS)) if isinstance(node, dict) else ["figure"]
    if unknown:
        raise InputError(f"figure.{unknown[0]}: no such key with figure=sweep{nearest(unknown[0], KEYS)}")
    return Look.of(node)


def draw_sweep(request: SweptFigure, session: Session) -> Document:
    """Plot the sweep from the current records."""
    from icl.figures.files import save
    from icl.figures.sweep import SweptPlot

    started, stored = time.monotonic(), request.stored
    outcomes = [stored.outcome(job, current_digest) for job in stored.jobs]
    x, y, hue = request.axes
    plot = SweptPlot(stored.table(outcomes), stored.keys, x, y, hue, request.best_by)
    about: dict[str, Any] = {"sweep": stored.folder.name, "x": x, "y": y, "hue": hue}
    folder = session.outputs / "figures" / "sweep" / fingerprint(about)
    command = f"icl figure figure=sweep sweep={stored.folder} x={x} y={y}" + (f" hue={hue}" if hue else "")
    description = f"# {stored.folder.name}\n\n{plot.caption}\n\n`{command}`\n"
    name = "-".join(filter(None, ["sweep", *request.best_by, request.look.name]))
    with atomic.writing(session.outputs), drawn_as(request.look):
        files = save(folder / name, plot.draw, plot.table(), description, request.look.formats)
    document = {
        "figure": "sweep",
        "scale": request.scale,
        "files": {extension: str(path) for extension, path in files.items()},
        "claims": [],
        "runs": sorted({str(outcome.path) for outcome in outcomes}),
        "seconds": time.monotonic() - started,
        "cached": False,
        "caption": plot.caption,
        "best_by": plot.best,
        **about,
    }
    drawn = [outcome.path for outcome in outcomes if outcome.state == "done" and stored.kind == "train"]

    def write(log: DocumentLog) -> None:
        for path in drawn:
            log.uses(*model_of(RunRecord(path, documents.read_record(path / "run.json") or {})))
        if "png" in files:
            log.images(0, "sweep", [(plot.caption, files["png"].read_bytes())])
        rows = plot.table()
        log.table("points", list(rows[0]), [list(row.values()) for row in rows])

    _logger(request, document, session).log(about, write, session.info)
    return document


def _logger(request: SweptFigure, document: Document, session: Session) -> DocumentLogger:
    """Return the logger of the picture, in the group of the sweep's jobs."""
    stored, (x, y, _) = request.stored, request.axes
    id = next((job.id for job in stored.jobs if job.id), stored.kind)
    identity = Path(document["files"]["csv"]).parent.name
    name = f"{sweep_status.title(stored)}: {y} by {x}"
    group = grouped(sweep_status.title(stored), stored.folder.name)
    content = {key: value for key, value in document.items() if key != "seconds"}
    return DocumentLogger(
        session.logger, session.outputs, "figure", id, name, request.scale, identity, content, group
    )
