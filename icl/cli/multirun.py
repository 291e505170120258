"""`-m`: every job validated before the first starts, failures kept apart, one table at the end."""

from __future__ import annotations

import csv
import io
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from icl.cli.outcome import FAILED, OK, Outcome, emit, stdout_kept_for_results, worst
from icl.config import outputs_folder, register_resolvers
from icl.errors import InputError, Interrupted
from icl.runs.kinds import RISKS, kind_of

SHOWN = ("loss", *RISKS, "dist_preconditioned")
Result = Mapping[str, Any]  # what a job left: status, exit_code, document


@dataclass
class _Current:
    """The multirun of this process; Hydra calls the sweeper without a way to hand it anything."""

    validate: Callable[[DictConfig], Any] = lambda cfg: None
    code: int = OK


_current = _Current()


def start(validate: Callable[[DictConfig], Any]) -> None:
    global _current
    _current = _Current(validate)


def finished() -> int:
    return _current.code


@dataclass(frozen=True)
class Task:
    """The task function Hydra hands to a launcher: picklable, and it never raises over a failed job."""

    job: Callable[[DictConfig], Outcome]
    config_dir: str | None
    pid: int  # of the process that asked

    def __call__(self, cfg: DictConfig) -> Result:
        from icl.cli.app import say_failure
        from icl.cli.hydra_app import use_config_dir

        register_resolvers()  # a worker process starts without them
        use_config_dir(self.config_dir)
        try:
            with stdout_kept_for_results():
                outcome = self.job(cfg)
        except (Interrupted, KeyboardInterrupt) as error:
            if os.getpid() == self.pid:
                raise
            signum = error.signum if isinstance(error, Interrupted) else 2
            return {"status": "interrupted", "exit_code": 128 + signum, "document": {}}
        except BaseException as error:
            say_failure("job failed: ", error, tell_all=bool(cfg.verbose))
            reason = f"{type(error).__name__}: {error}"
            return {"status": "failed", "exit_code": FAILED, "document": {}, "error": reason}
        return {"status": "done", "exit_code": outcome.exit_code, "document": outcome.document}


@dataclass(frozen=True)
class Sweep:
    """The jobs of a multirun, all of them validated."""

    jobs: Sequence[Sequence[str]]  # the overrides each was composed with
    fingerprint: str
    outputs: Path
    form: str


def validated(jobs: Sequence[Sequence[str]], configs: Iterable[DictConfig]) -> Sweep:
    """Raises InputError if any job is unusable; nothing has been written then.

    `configs` may be a generator that sets HydraConfig for each, as a launcher does.
    """
    from icl.runs.fingerprint import fingerprint

    plans, places = [], set()
    for cfg in configs:
        plans.append(_current.validate(cfg))
        places.add((outputs_folder(cfg), cfg.format))
    if len(places) != 1:
        raise InputError("paths.outputs, format: must be the same in all jobs of a multirun")
    outputs, form = places.pop()
    identity = fingerprint({"jobs": [plan.fingerprint for plan in plans]})
    varying = [[o for o in job if len(jobs) == 1 or not all(o in other for other in jobs)] for job in jobs]
    return Sweep(varying, identity, outputs, form)


def conclude(sweep: Sweep, results: Sequence[Result], started: float) -> None:
    """Table, CSV and JSON of a finished multirun."""
    from icl.runs.atomic import write_bytes, writing

    for result in results:
        if result["status"] == "interrupted":
            raise Interrupted(result["exit_code"] - 128)
    summary = [row for job, result in zip(sweep.jobs, results, strict=True) for row in _rows(job, result)]
    path = sweep.outputs / "sweeps" / sweep.fingerprint / "summary.csv"
    with writing(sweep.outputs):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, _csv(summary).encode())
    failed = sum(result["status"] == "failed" for result in results)
    document = {
        "jobs": len(results),
        "done": len(results) - failed,
        "cached": sum(bool(result["document"].get("cached")) for result in results),
        "failed": failed,
        "seconds": time.monotonic() - started,
        "summary": summary,
        "sweep_csv": path,
        "results": [{"overrides": job, **result} for job, result in zip(sweep.jobs, results, strict=True)],
    }
    _current.code = worst([result["exit_code"] for result in results])
    emit(Outcome(document, show=lambda: _show(sweep.jobs, results, path)), sweep.form)


def _rows(job: Sequence[str], result: Result) -> list[dict[str, Any]]:
    """A run's metrics over its seeds; a check's measured numbers, which have no seeds."""
    from icl.runs.aggregate import interval

    document = result["document"]
    values = {name: list(entry["by_seed"].values()) for name, entry in document.get("metrics", {}).items()}
    numbers = {k: v for k, v in document.get("measured", {}).items() if isinstance(v, int | float)}
    values |= {name: [number] for name, number in numbers.items()}
    return [{"overrides": list(job), "metric": name, **interval(entries)} for name, entries in values.items()]


def _csv(summary: Sequence[Mapping[str, Any]]) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(["overrides", "metric", "mean", "low", "high"])
    for row in summary:
        writer.writerow([" ".join(row["overrides"]), row["metric"], row["mean"], row["low"], row["high"]])
    return text.getvalue()


def _show(jobs: Sequence[Sequence[str]], results: Sequence[Result], path: Path) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from icl.cli.train import mean_cell

    documents = [result["document"] for result in results]
    found = [document.get("metrics", {}) for document in documents]
    metrics = [name for name in SHOWN if any(m.get(name, {}).get("mean") is not None for m in found)]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column("job", overflow="fold")
    for name in ["state", *(["verdict"] if any("verdict" in d for d in documents) else []), *metrics]:
        kind = kind_of(name)
        heading = f"{name}\n{kind}" if kind else name
        table.add_column(heading, no_wrap=True, justify="right" if name in metrics else "left")
    for job, result, document in zip(jobs, results, documents, strict=True):
        state = "cached" if document.get("cached") else result["status"]
        verdict = [document.get("verdict", "")] if len(table.columns) == 3 + len(metrics) else []
        means = [mean_cell(document.get("metrics", {}), name) for name in metrics]
        table.add_row(" ".join(job), f"[red]{state}[/]" if state == "failed" else state, *verdict, *means)
    console = Console()
    console.print(table)
    for job, result in zip(jobs, results, strict=True):
        if result["status"] == "failed":
            console.print(f"{' '.join(job)}: {result['error']}", soft_wrap=True, markup=False)
    console.print(f"summary: {path}", soft_wrap=True, markup=False)
