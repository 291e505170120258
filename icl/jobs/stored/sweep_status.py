"""Status and results of a sweep, from the records of its jobs: `icl sweep sweep=PATH`."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from icl.config.compose import Composed
from icl.config.search_path import ConfigDirs
from icl.config.session import Session, parse_session
from icl.errors import InputError, nearest
from icl.jobs.requests.request import Document
from icl.loggers.names import short_keys
from icl.runs.sweeps import PLAN, STATES, Outcome, StoredSweep, read_sweep, stored_sweeps

OWN = ("sweep",)


def parse(composed: Composed, configs: ConfigDirs) -> tuple[StoredSweep, Session]:
    session, wanted = parse_session("sweep", OWN, composed, configs), composed.settings["sweep"]
    folders = stored_sweeps(session.outputs)
    if not isinstance(wanted, str) or not wanted:
        there = f"one of {', '.join(map(str, folders))}" if folders else f"there is none in {session.outputs}"
        raise InputError(f"sweep={wanted}: must be last, or the folder of a sweep: {there}")
    try:
        return read_sweep(_named(wanted, folders) or wanted), session
    except InputError as error:
        raise InputError(f"{error}{nearest(wanted, list(map(str, folders)))}") from None


def _named(wanted: str, folders: Sequence[Path]) -> Path | None:
    """Return the sweep of this name, the one that the user gave it or that it prints; or the newest."""
    if wanted == "last":
        return max(folders, key=lambda folder: (folder / PLAN).stat().st_mtime_ns, default=None)
    found = []
    for folder in folders:
        with contextlib.suppress(InputError):  # what cannot be read has no name
            found += [folder] if title(read_sweep(folder)) == wanted else []
    return found[0] if len(found) == 1 else None


def sweep_status(stored: StoredSweep) -> Document:
    """Write the sweep's table again from the stored jobs, and return its document."""
    started = time.monotonic()
    outcomes = [stored.outcome(job) for job in stored.jobs]
    return sweep_document(stored, outcomes) | {"seconds": time.monotonic() - started}


def title(stored: StoredSweep) -> str:
    """Return the sweep's name: what the user called it, or else what is swept."""
    if stored.name:
        return stored.name
    ids = ", ".join(dict.fromkeys(job.id for job in stored.jobs if job.id))
    keys = ", ".join(short_keys(stored.keys).values()) or "seed"
    return f"{ids} over {keys}" if ids and len(stored.jobs) > 1 else ids or stored.kind


def sweep_document(stored: StoredSweep, outcomes: Sequence[Outcome]) -> Document:
    """Return the document of a sweep whose jobs have these outcomes."""
    summary = stored.summary(outcomes)
    states = Counter(outcome.state for outcome in outcomes)
    failures = [
        {"overrides": stored.own_overrides(job), "error": outcome.error, "run_dir": str(outcome.path)}
        for job, outcome in zip(stored.jobs, outcomes, strict=True)
        if outcome.state == "failed"
    ]
    path = stored.write_table(stored.table(outcomes))
    return {
        "sweep": str(stored.folder),
        "name": title(stored),
        "jobs": len(stored.jobs),
        "done": states["done"],
        "cached": states["done"],
        "failed": states["failed"],
        "states": {state: states[state] for state in STATES},
        "summary": summary,
        "best": stored.best(summary),
        "failures": failures,
        "sweep_csv": str(path),
    }
