"""`-m`: every job validated before the first starts, failures kept apart, one table at the end."""

from __future__ import annotations

import csv
import io
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from icl.cli.outcome import FAILED, OK, Outcome, emit, stdout_kept_for_results, worst
from icl.errors import Interrupted

SHOWN = ("loss", "exact_risk", "dist_preconditioned", "dist_plain")


@dataclass
class Multirun:
    """The multirun of this process: how its verb validates a job, and what it ended with."""

    validate: Callable[[DictConfig], object] = lambda cfg: None
    code: int = OK


current = Multirun()


@dataclass
class MultirunTask:
    """The task function Hydra hands to a launcher: picklable, and it never raises over a failed job."""

    job: Callable[[DictConfig], Outcome]

    def __call__(self, cfg: DictConfig) -> dict[str, Any]:
        from icl.config import register_resolvers

        register_resolvers()  # a worker process starts without them
        try:
            with stdout_kept_for_results():
                outcome = self.job(cfg)
        except (Interrupted, KeyboardInterrupt):
            raise
        except BaseException as error:
            print(f"icl: job failed: {type(error).__name__}: {error}", file=sys.stderr)
            if cfg.get("verbose"):
                traceback.print_exc()
            return {"status": "failed", "error": f"{type(error).__name__}: {error}", "exit_code": FAILED}
        return {**outcome.document, "exit_code": outcome.exit_code}


def conclude(
    jobs: Sequence[Sequence[str]], results: Sequence[Mapping[str, Any]], cfg: DictConfig, started: float
) -> None:
    """Table, CSV and JSON of a finished multirun."""
    from icl.config import outputs_folder
    from icl.runs.aggregate import interval
    from icl.runs.atomic import write_bytes
    from icl.runs.fingerprint import fingerprint

    summary = []
    for overrides, result in zip(jobs, results, strict=True):
        for metric, entry in result.get("metrics", {}).items():
            spread = interval(list(entry["by_seed"].values()))
            summary.append({"overrides": list(overrides), "metric": metric, **spread})
    folder = outputs_folder(cfg) / "sweeps" / fingerprint({"jobs": [list(job) for job in jobs]})
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "summary.csv"
    write_bytes(path, _csv(summary).encode())
    failed = [r for r in results if r["status"] == "failed"]
    document = {
        "jobs": len(results),
        "done": len(results) - len(failed),
        "cached": sum(bool(r.get("cached")) for r in results),
        "failed": len(failed),
        "seconds": time.monotonic() - started,
        "summary": summary,
        "sweep_csv": path,
    }
    current.code = worst([int(r["exit_code"]) for r in results])
    emit(Outcome(document, current.code, lambda: _show(jobs, results, path)), cfg.format)


def _csv(summary: Sequence[Mapping[str, Any]]) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(["overrides", "metric", "mean", "low", "high"])
    for row in summary:
        writer.writerow([" ".join(row["overrides"]), row["metric"], row["mean"], row["low"], row["high"]])
    return text.getvalue()


def _show(jobs: Sequence[Sequence[str]], results: Sequence[Mapping[str, Any]], path: Path) -> None:
    from rich.console import Console
    from rich.table import Table

    from icl.cli.train import number

    metrics = [m for m in SHOWN if any(r.get("metrics", {}).get(m, {}).get("mean") is not None for r in results)]
    table = Table("job", "state", *metrics, "run")
    for overrides, result in zip(jobs, results, strict=True):
        means = [number(result.get("metrics", {}).get(m, {}).get("mean")) for m in metrics]
        state = "cached" if result.get("cached") else result["status"]
        where = result.get("fingerprint") or result.get("error", "")
        table.add_row(" ".join(overrides), state, *means, where)
    console = Console()
    console.print(table)
    console.print(f"summary: {path}", soft_wrap=True)

