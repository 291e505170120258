"""Status and results of a sweep, from the records of its jobs: `icl sweep sweep=PATH`."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from icl.config.compose import Composed
from icl.config.search_path import ConfigDirs
from icl.config.session import Session, parse_session
from icl.config.values import flatten
from icl.errors import InputError, nearest
from icl.jobs.requests.request import Document
from icl.jobs.stored.run_names import short_keys
from icl.look import FORMATS
from icl.runs.code import current_digest
from icl.runs.documents import read_record
from icl.runs.sweeps import PLAN, STATES, Outcome, StoredSweep, grouping_keys, read_sweep, stored_sweeps

OWN = ("sweep", "wandb", "best_by", "x", "y", "hue", "figure")
_LOOK = {"style": None, "width": None, "formats": list(FORMATS)}
_DRAWN = {"x": None, "y": "exact_risk", "hue": None, "figure": _LOOK}  # of icl figure figure=sweep


@dataclass(frozen=True)
class SweepRequest:
    stored: StoredSweep
    wandb: bool = False
    best_by: tuple[str, ...] = ()


def parse(composed: Composed, configs: ConfigDirs, *, drawn: bool = False) -> tuple[SweepRequest, Session]:
    """Parse the request for a sweep, whose axes matter only if it is to be `drawn`."""
    settings = composed.settings
    session, path = parse_session("sweep", OWN, composed, configs), settings["sweep"]
    given = flatten({name: settings[name] for name in _DRAWN})
    for name, default in () if drawn else flatten(_DRAWN).items():
        if given.get(name) != default:
            raise InputError(f"{name}={given.get(name)}: is for icl figure figure=sweep, which draws")
    if not isinstance(settings["wandb"], bool):
        raise InputError(f"wandb={settings['wandb']}: must be true or false")
    if not isinstance(path, str) or not path:
        known = [str(folder) for folder in stored_sweeps(session.outputs)]
        there = f"one of {', '.join(known)}" if known else f"there is none in {session.outputs}"
        raise InputError(f"sweep={'null' if path is None else path}: must be the folder of a sweep: {there}")
    named = [folder for folder in stored_sweeps(session.outputs) if _name(folder) == path]
    path = str(named[0]) if len(named) == 1 else path
    try:
        stored = read_sweep(path)
    except InputError as error:
        close = nearest(path, [str(folder) for folder in stored_sweeps(session.outputs)])
        raise InputError(f"{error}{close}") from None
    return SweepRequest(
        stored, settings["wandb"], tuple(grouping_keys(settings["best_by"], stored.keys))
    ), session


def _name(folder: Path) -> str | None:
    return (read_record(folder / PLAN) or {}).get("name")


def sweep_status(request: SweepRequest) -> Document:
    """Write the sweep's table again from the stored jobs, and return its document."""
    started, stored = time.monotonic(), request.stored
    outcomes = [stored.outcome(job, current_digest) for job in stored.jobs]
    document = sweep_document(stored, outcomes, request.best_by)
    if request.wandb:
        document["wandb_sweep"] = str(stored.write_wandb())
    return document | {"seconds": time.monotonic() - started}


def title(stored: StoredSweep) -> str:
    """Return the sweep's name: what the user called it, or else what is swept."""
    if stored.name:
        return stored.name
    ids = ", ".join(dict.fromkeys(job.id for job in stored.jobs if job.id))
    keys = ", ".join(short_keys(stored.keys).values()) or "seed"
    return f"{ids} over {keys}" if ids and len(stored.jobs) > 1 else ids or stored.kind


def sweep_document(stored: StoredSweep, outcomes: Sequence[Outcome], best_by: Sequence[str] = ()) -> Document:
    """Return the document of a sweep whose jobs have these outcomes, with the best of each group."""
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
        "best_by": stored.best_by(summary, best_by) if best_by else [],
        "failures": failures,
        "sweep_csv": str(path),
    }
