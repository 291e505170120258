"""The results of a sweep in the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from icl.cli import show as shown
from icl.metrics import RISKS

METRICS = (*RISKS, "loss", "dist_preconditioned")  # of which a table has the first; sweep.csv has all
MOST = 3
FEW = 24  # jobs that are shown one by one


def show(document: Mapping[str, Any]) -> None:
    """Show the result of each job (of a few) and configuration, the best, and what failed."""
    from rich.console import Console

    console = Console()
    results = document.get("results", [])
    if 0 < len(results) <= FEW:
        shown.multirun(results)
    if not results or len(results) > FEW or any(row["low"] is not None for row in document["summary"]):
        known = {row["metric"] for row in document["summary"] if row["mean"] is not None}
        metrics = [metric for metric in METRICS if metric in known][:MOST]
        if metrics:
            console.print(_configurations(document["summary"], metrics))
            names = dict.fromkeys(row["interval"] for row in document["summary"] if row["interval"])
            if names:
                console.print(f"in brackets: {', '.join(names)} over seeds", highlight=False)
    console.print(f"sweep: {document['name']}", soft_wrap=True, markup=False, highlight=False)
    counts = [f"{count} {state}" for state, count in document["states"].items() if count]
    console.print(f"{document['jobs']} jobs: {', '.join(counts)}", highlight=False)
    if document["states"]["stale"]:
        console.print("stale: made with other code than today's; the same sweep makes them again")
    best = document["best"]
    if best is not None and best["overrides"]:
        what = f"{best['metric']} {_interval(best)}"
        console.print(f"best: {' '.join(best['overrides'])}: {what}", soft_wrap=True, markup=False)
    for failure in document["failures"]:
        line = f"failed: {' '.join(failure['overrides'])}: {failure['error']}\n  {failure['run_dir']}"
        console.print(line, soft_wrap=True, markup=False, style="red", highlight=False)
    console.print(f"table: {document['sweep_csv']}", soft_wrap=True, markup=False, highlight=False)


def _configurations(summary: Sequence[Mapping[str, Any]], metrics: Sequence[str]) -> Any:
    """Mean and interval of these metrics."""
    rows: dict[str, dict[str, Any]] = {}
    for row in summary:
        rows.setdefault(" ".join(row["overrides"]), {})[row["metric"]] = row
    table = shown.headed((0, 1))
    table.add_column("mean over seeds", overflow="fold")
    for name in metrics:
        table.add_column(shown.heading(name), justify="right", no_wrap=True)
    for overrides, by_metric in rows.items():
        table.add_row(overrides or "all", *(_interval(by_metric.get(name, {})) for name in metrics))
    return table


def _interval(row: Mapping[str, Any]) -> str:
    if row.get("mean") is None:
        return "-"
    between = "" if row["low"] is None else f" ({row['low']:.3g}, {row['high']:.3g})"
    return f"{row['mean']:.4g}{between}"
