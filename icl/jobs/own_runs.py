"""The training runs and sweeps that are in an outputs folder, as the report shows them."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import yaml

from icl.config.values import literal
from icl.errors import InputError
from icl.report.book import Numbers, Run, SweptRuns
from icl.runs import layout
from icl.runs.bootstrap import bootstrap
from icl.runs.documents import read_json
from icl.runs.kinds import RISKS, kind_of
from icl.runs.sweeps import read_sweep, stored_sweeps

SHOWN = (*RISKS, "loss", "dist_preconditioned")
_TOLD = ("task", "model", "optimizer", "train")  # of a run's config, what tells it from others
_MOST_TOLD = 3


def trained(outputs: Path, known: Collection[str] = ()) -> list[Run]:
    """Every run that was trained here, but those at `known` places. What a figure computed is none."""
    places = [place for place in layout.walk(outputs) if place.kind == layout.RUNS]
    runs = [run for place in places for run in _run(place, outputs) if run.place not in known]
    runs.sort(key=lambda run: run.place)
    return [
        named
        for _, group in groupby(runs, lambda run: run.name)
        for named in _told_apart(list(group), outputs)
    ]


def swept(outputs: Path) -> list[SweptRuns]:
    """Every sweep; one that cannot be read hides no other."""
    return [sweep for folder in stored_sweeps(outputs) for sweep in _sweep(folder, outputs)]


def _run(place: layout.Place, outputs: Path) -> Iterator[Run]:
    run = read_json(place.path) or {}
    if run.get("steps") and run.get("metrics"):
        numbers = [
            Numbers(name, kind_of(name), **bootstrap(list(run["metrics"][name]["by_seed"].values())))
            for name in SHOWN
            if name in run["metrics"]
        ]
        at, ended = place.path.parent.relative_to(outputs).as_posix(), run.get("ended") or ""
        yield Run(place.id, at, _known(numbers), run["status"], run["seeds"], run["steps"], _minute(ended))


def _told_apart(runs: Sequence[Run], outputs: Path) -> list[Run]:
    """Runs of one experiment, each with the settings that the others do not share."""
    if len(runs) == 1:
        return list(runs)
    configs = [_flat(_config(outputs / run.place)) for run in runs]
    first = configs[0]
    keys = {key for config in configs for key in {*config, *first} if config.get(key) != first.get(key)}
    told = sorted(key for key in keys if key.partition(".")[0] in _TOLD)
    told = sorted(told, key=lambda key: _TOLD.index(key.partition(".")[0]))[:_MOST_TOLD]
    own = [" ".join(f"{key}={literal(config.get(key))}" for key in told) for config in configs]
    return [replace(run, name=f"{run.name} {text}".strip()) for run, text in zip(runs, own, strict=True)]


def _config(folder: Path) -> Any:
    try:
        return yaml.safe_load((folder / "config.yaml").read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError):
        return {}


def _flat(node: Any, prefix: str = "") -> dict[str, Any]:
    if not isinstance(node, Mapping):
        return {prefix.removesuffix("."): node}
    found = [_flat(entry, f"{prefix}{name}.") for name, entry in node.items()]
    return {key: leaf for part in found for key, leaf in part.items()}


def _sweep(folder: Path, outputs: Path) -> Iterator[SweptRuns]:
    try:
        stored = read_sweep(folder)
    except (InputError, KeyError, TypeError):
        return
    outcomes = [stored.outcome(job) for job in stored.jobs]
    summary = stored.summary(outcomes)
    best = stored.best(summary)
    ids = ", ".join(dict.fromkeys(job.id for job in stored.jobs if job.id))
    states = dict(Counter(outcome.state for outcome in outcomes))
    place = folder.relative_to(outputs).as_posix()
    members = [outcome.path.relative_to(outputs).as_posix() for outcome in outcomes]
    shown = _configurations(summary, place)
    yield SweptRuns(f"{stored.kind} {ids}", place, states, shown, _words(best), members)


def _configurations(summary: Sequence[Mapping[str, Any]], place: str) -> list[Run]:
    """Those metrics that a report shows; of a check, whose metrics are its own, the first few."""
    by_name: dict[str, list[Numbers]] = {}
    for row in summary:
        numbers = Numbers(row["metric"], kind_of(row["metric"]), row["mean"], row["low"], row["high"])
        by_name.setdefault(_words(row), []).append(numbers)
    known = {
        name: [n for n in numbers if n.metric in SHOWN] or numbers[:3] for name, numbers in by_name.items()
    }
    return [Run(name, place, _known(numbers)) for name, numbers in known.items()]


def _known(numbers: Sequence[Numbers]) -> list[Numbers]:
    return [found for found in numbers if found.mean is not None]


def _words(row: Mapping[str, Any] | None) -> str:
    return "" if row is None else " ".join(row["overrides"]) or "all"


def _minute(iso: str) -> str:
    try:
        return datetime.datetime.fromisoformat(iso).strftime("%Y-%m-%d %H:%M")
    except ValueError:
        return ""
