"""A sweep in the terminal: its progress while it runs, and its results."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from icl.cli import show as shown
from icl.jobs.execution.multirun import Sweep
from icl.runs.code import current_digest
from icl.runs.metric_kinds import RISKS
from icl.runs.sweeps import STATES

METRICS = (*RISKS, "loss", "dist_preconditioned")  # of a table, as many as fit; sweep.csv has them all
FEW = 24  # jobs that are shown one by one
_COLOURS = {"running": "cyan", "failed": "red", "interrupted": "yellow"}


def show(document: Mapping[str, Any]) -> None:
    """Show the result of each job (of a few) and configuration, the best, and what failed."""
    from rich.console import Console

    console = Console()
    results = document.get("results", [])
    if 0 < len(results) <= FEW:
        shown.multirun(results)
    if not results or len(results) > FEW or any(row["low"] is not None for row in document["summary"]):
        known = {row["metric"] for row in document["summary"] if row["mean"] is not None}
        metrics = [metric for metric in METRICS if metric in known]
        while len(metrics) > 1 and shown.width(_configurations(document["summary"], metrics)) > console.width:
            metrics.pop()
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
    for best in document["best_by"]:
        group = " ".join(f"{key}={value}" for key, value in best["group"].items())
        others = [one for one in best["overrides"] if one.partition("=")[0].lstrip("+") not in best["group"]]
        line = f"best at {group}: {' '.join(others)}: {best['metric']} {_interval(best)}"
        console.print(line, soft_wrap=True, markup=False)
    for failure in document["failures"]:
        line = f"failed: {' '.join(failure['overrides'])}: {failure['error']}\n  {failure['run_dir']}"
        console.print(line, soft_wrap=True, markup=False, style="red", highlight=False)
    console.print(f"table: {document['sweep_csv']}", soft_wrap=True, markup=False, highlight=False)
    if "wandb_sweep" in document:
        line = f"for W&B: wandb sweep {document['wandb_sweep']}"
        console.print(line, soft_wrap=True, markup=False, highlight=False)


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


class Watch:
    """`with Watch(sweep):` a table of how far its jobs are, on a terminal, read from their records every
    `seconds`, wherever and by whatever launcher they run."""

    def __init__(self, sweep: Sweep, seconds: float = 1.0) -> None:
        self.sweep, self.seconds = sweep, seconds
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Watch:
        if sys.stderr.isatty():
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        from rich.console import Console
        from rich.live import Live

        console = Console(file=sys.stderr)
        with Live(console=console, transient=True, redirect_stdout=False, redirect_stderr=False) as live:
            while True:
                started = time.monotonic()
                live.update(self.table(), refresh=True)
                # Ten thousand records take seconds to read, of a processor that has jobs to do.
                if self._stop.wait(max(self.seconds, 10 * (time.monotonic() - started))):
                    break

    def table(self) -> Any:
        """Return a table of the number of jobs in each state, and the first that are unfinished or failed."""
        from rich.console import Group
        from rich.text import Text

        stored = self.sweep.stored
        outcomes = [stored.outcome(job, current_digest) for job in stored.jobs]
        counts = Counter(outcome.state for outcome in outcomes)
        lines = [
            Text("  ".join(f"{counts[state]} {state}" for state in STATES if counts[state]) or "starting")
        ]
        unfinished = [
            (outcome, job, number)
            for state in ("failed", "running", "interrupted")
            for number, (job, outcome) in enumerate(zip(stored.jobs, outcomes, strict=True), 1)
            if outcome.state == state
        ]
        for outcome, job, number in unfinished[:FEW]:
            which = f"{number}/{len(stored.jobs)} {' '.join(stored.own_overrides(job))}"
            text = f"{outcome.state:<12}{which} {outcome.error}"
            lines.append(Text(text, style=_COLOURS[outcome.state], no_wrap=True, overflow="ellipsis"))
        return Group(*lines)
