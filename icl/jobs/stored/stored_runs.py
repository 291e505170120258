"""The training runs and sweeps that are in an outputs folder, as the report shows them."""

from __future__ import annotations

import datetime
import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from icl.errors import InputError
from icl.jobs.stored.run_list import ListedRun, listed_runs
from icl.jobs.stored.sweep_status import title
from icl.report.content import MetricSummary, ReportedRun, SweptRuns
from icl.runs.code import current_digest
from icl.runs.documents import read_record
from icl.runs.intervals import seed_interval
from icl.runs.metric_kinds import RISKS, kind_of
from icl.runs.sweeps import DEFAULT_METRICS, read_sweep, stored_sweeps

SHOWN = (*RISKS, "loss", "dist_preconditioned")
MOST = 500  # runs, and configurations of a sweep, on the page


def stored_runs_for_report(
    outputs: Path, known: Collection[str] = ()
) -> tuple[list[ReportedRun], int, Mapping[str, int]]:
    """Return the runs that were trained here but those at `known` places, the newest first, how many older
    ones are not shown, and by figure how many it trained for itself."""
    listed = listed_runs(outputs)
    runs = [run for run in listed if _relative(run.path, outputs) not in known]
    begun = [run for run in runs if run.status != "done" or (run.stored.steps and run.metrics)]
    return [_reported(run, outputs) for run in begun[:MOST]], max(len(begun) - MOST, 0), listed.folded


def stored_sweeps_for_report(outputs: Path) -> list[SweptRuns]:
    """Return every sweep; one that cannot be read hides no other."""
    return [sweep for folder in stored_sweeps(outputs) for sweep in _sweep(folder, outputs)]


def _reported(run: ListedRun, outputs: Path) -> ReportedRun:
    by_name = (read_record(run.path / "run.json") or {}).get("metrics") or {}
    numbers = [
        MetricSummary(name, kind_of(name), **seed_interval(list(by_name[name]["by_seed"].values())))
        for name in SHOWN
        if name in by_name
    ]
    status = "stale" if run.stale and run.status == "done" else run.status
    about = (status, run.stored.seeds, run.stored.steps or 0, _minute(run.date))
    warnings = list(dict.fromkeys(text for text in (run.stored.why, *run.stored.notes) if text))
    return ReportedRun(run.name, _relative(run.path, outputs), _with_a_mean(numbers), *about, warnings)


def _relative(path: Path, outputs: Path) -> str:
    return os.path.relpath(path, outputs)


def _sweep(folder: Path, outputs: Path) -> Iterator[SweptRuns]:
    try:
        stored = read_sweep(folder)
    except (InputError, KeyError, TypeError):
        return
    outcomes = [stored.outcome(job, current_digest) for job in stored.jobs]
    wanted = None if stored.kind != "train" else {*SHOWN, *DEFAULT_METRICS, stored.metric or ""}
    summary = stored.summary(outcomes, wanted)
    best = stored.best(summary)
    states = dict(Counter(outcome.state for outcome in outcomes))
    place = _relative(folder, outputs)
    members = [_relative(outcome.path, outputs) for outcome in outcomes]
    shown = _configurations(summary, place)
    more = max(len(shown) - MOST, 0)
    if best is not None and more:
        shown = _sorted_by(shown, best["metric"])
    yield SweptRuns(title(stored), place, states, shown[:MOST], _overrides_text(best), members, more)


def _configurations(summary: Sequence[Mapping[str, Any]], place: str) -> list[ReportedRun]:
    """Return each configuration with the metrics that a report shows; for a check, its first few."""
    by_name: dict[str, list[MetricSummary]] = {}
    for row in summary:
        numbers = MetricSummary(row["metric"], kind_of(row["metric"]), row["mean"], row["low"], row["high"])
        by_name.setdefault(_overrides_text(row), []).append(numbers)
    known = {
        name: [n for n in numbers if n.metric in SHOWN] or numbers[:3] for name, numbers in by_name.items()
    }
    return [ReportedRun(name, place, _with_a_mean(numbers)) for name, numbers in known.items()]


def _sorted_by(runs: Sequence[ReportedRun], metric: str) -> list[ReportedRun]:
    """Return the runs sorted by their mean of `metric`."""
    means = [{n.metric: n.mean for n in run.metrics}.get(metric) for run in runs]
    ranked = sorted(range(len(runs)), key=lambda i: (means[i] is None, means[i] or 0.0))
    return [runs[i] for i in ranked]


def _with_a_mean(numbers: Sequence[MetricSummary]) -> list[MetricSummary]:
    return [found for found in numbers if found.mean is not None]


def _overrides_text(row: Mapping[str, Any] | None) -> str:
    return "" if row is None else " ".join(row["overrides"]) or "all"


def _minute(iso: str) -> str:
    try:
        return datetime.datetime.fromisoformat(iso).strftime("%Y-%m-%d %H:%M")
    except ValueError:
        return ""
