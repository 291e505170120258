"""Status and results of a sweep, from the records of its jobs: `icl sweep sweep=PATH`."""

import contextlib
import time
from collections import Counter
from collections.abc import Sequence

from icl.config.compose import Composed
from icl.config.search_path import ConfigDirs
from icl.config.session import Session, parse_session
from icl.errors import InputError, nearest
from icl.jobs.requests.request import Document
from icl.loggers.names import short_keys
from icl.runs.sweeps import PLAN, STATES, Outcome, StoredSweep, read_sweep, stored_sweeps

OWN = ("sweep",)


def parse(composed: Composed, configs: ConfigDirs) -> tuple[StoredSweep, Session]:
    session, wanted = parse_session("sweep", OWN, composed, configs), str(composed.settings["sweep"])
    folders, sweeps = stored_sweeps(session.outputs), list[StoredSweep]()  # the newest first
    for folder in sorted(folders, key=lambda folder: (folder / PLAN).stat().st_mtime_ns, reverse=True):
        with contextlib.suppress(InputError):  # that cannot be read
            sweeps.append(read_sweep(folder))
    for sweep in sweeps:
        if wanted in ("last", title(sweep)):
            return sweep, session
    if wanted == "last":
        raise InputError(f"sweep=last: there is none in {session.outputs}")
    try:
        return read_sweep(wanted), session
    except InputError as error:
        known = [text for sweep in sweeps for text in (title(sweep), str(sweep.folder))]
        raise InputError(f"{error}{nearest(wanted, known)}") from None


def sweep_status(stored: StoredSweep) -> Document:
    """Write the sweep's table again from the stored jobs, and return its document."""
    started = time.monotonic()
    outcomes = [stored.outcome(job) for job in stored.jobs]
    return sweep_document(stored, outcomes) | {"seconds": time.monotonic() - started}


def title(stored: StoredSweep) -> str:
    """Return the sweep's name: what is swept."""
    ids = ", ".join(dict.fromkeys(job.id for job in stored.jobs if job.id))
    keys = " x ".join(short_keys(stored.keys).values()) or "seed"
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
