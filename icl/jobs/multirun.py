"""Many jobs of one verb: all validated before the first starts, failures kept apart, one document."""

from __future__ import annotations

import csv
import io
import os
import re
import sys
import traceback
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from icl.config.compose import Composed
from icl.config.multirun import Result
from icl.config.places import Configs
from icl.config.session import keep_caches_in, session_of
from icl.errors import InputError, Interrupted, full_errors, nearest, one_line
from icl.jobs.kinds import OWN, requested
from icl.jobs.outcome import FAILED, code_of
from icl.jobs.request import Document, obtain, prepare
from icl.runs.fingerprint import fingerprint

OPTIMISERS = ("optuna", "ax", "nevergrad")  # Hydra's sweepers that want a number back
_OF_NO_NUMBER = (
    "format",
    "force",
    "verbose",
    "paths",
    "logger",
)  # keys; what is sought does not depend on them


class JobFailed(Exception):
    """What a sweeper is told of a job that failed."""


@dataclass(frozen=True)
class Job:
    """A job that can be run, or that is done: then `result` says how it ended."""

    id: str
    identity: str
    scale: str
    place: tuple[Path, str]
    result: Result | None


@dataclass
class Sweep:
    """The jobs of a multirun of `kind`: of a grid, all known before the first starts, or of a search."""

    kind: str
    configs: Configs
    pid: int = field(default_factory=os.getpid)  # of the process that asked
    fingerprint: str = ""
    outputs: Path = Path()
    form: str = "text"

    @property
    def folder(self) -> Path:
        return self.outputs / "sweeps" / self.fingerprint

    def grid(self, composed: Iterable[Composed]) -> list[Result | None]:
        jobs = [self._validated(one) for one in composed]
        if not jobs:
            raise InputError("-m: a range or a glob without a value leaves no job")
        if len({job.place for job in jobs}) != 1:
            raise InputError("paths.outputs, format: must be the same in all jobs of a multirun")
        if len({(job.id, job.identity, job.scale) for job in jobs}) < len(jobs):
            raise InputError(f"-m: two jobs are one and the same {self.kind}")
        self._settle(*jobs[0].place, {"jobs": [job.identity for job in jobs]})
        return [job.result for job in jobs]

    def search(self, composed: Composed, sweeper: Any, swept: Sequence[str]) -> None:
        name = composed.choices.get("hydra/sweeper")
        if name in OPTIMISERS and composed.settings.get("optimized_metric") is None:
            raise InputError(f"hydra/sweeper={name}: needs optimized_metric=exact_risk, or another metric")
        outputs = session_of(self.kind, OWN[self.kind], composed, self.configs).outputs
        asked = sorted(o for o in swept if re.split("[.=]", o.lstrip("+~"))[0] not in _OF_NO_NUMBER)
        self._settle(outputs, composed.settings["format"], {"sweeper": sweeper, "overrides": asked})

    def admit(self, composed: Composed) -> Result | None:
        job = self._validated(composed)
        if job.place != (self.outputs, self.form):
            raise InputError("paths.outputs, format: must be the same in all jobs of a multirun")
        return job.result

    def failed(self, error: Exception) -> Result:
        return _failure(error)

    def answer(self, result: Result) -> Any:
        if result["status"] == "interrupted":
            raise Interrupted(result["exit_code"] - 128)
        return JobFailed(result["error"]) if result["status"] == "failed" else result["objective"]

    def _validated(self, composed: Composed) -> Job:
        request, session = requested(self.kind, composed, self.configs)
        keep_caches_in(session.outputs)
        document = prepare(request, session)
        return Job(
            id=request.id,
            identity=request.identity,
            scale=composed.settings["scale"],
            place=(session.outputs, composed.settings["format"]),
            result=None if document is None else _success(document, composed),
        )

    def _settle(self, outputs: Path, form: str, about: Mapping[str, Any]) -> None:
        self.outputs, self.form, self.fingerprint = outputs, form, fingerprint(about)


@dataclass(frozen=True)
class Attempt:
    """One job, wherever a launcher runs it. Over a failure it does not raise."""

    kind: str
    configs: Configs
    pid: int

    def __call__(self, composed: Composed) -> Result:
        try:
            request, session = requested(self.kind, composed, self.configs)
            return _success(obtain(request, session), composed)
        except (Interrupted, KeyboardInterrupt) as error:
            if os.getpid() == self.pid:
                raise
            signum = error.signum if isinstance(error, Interrupted) else 2
            return {"status": "interrupted", "exit_code": 128 + signum, "document": {}}
        except BaseException as error:
            print(f"icl: job failed: {type(error).__name__}: {one_line(error)}", file=sys.stderr)
            if composed.settings.get("verbose") is True or full_errors():
                traceback.print_exception(error)
            return _failure(error)


def _success(document: Document, composed: Composed) -> Result:
    objective = _objective(document, composed.settings.get("optimized_metric"))
    code = code_of(document)
    return {"status": "done", "exit_code": code, "document": document, "objective": objective}


def _failure(error: BaseException) -> Result:
    reason = f"{type(error).__name__}: {error}"
    return {"status": "failed", "exit_code": FAILED, "document": {}, "error": reason}


def _objective(document: Document, metric: str | None) -> float | None:
    """The mean over seeds of the metric that a search goes by."""
    if metric is None:
        return None
    known = document["metrics"]
    if metric not in known:
        raise InputError(f"optimized_metric={metric}: no such metric{nearest(metric, known)}")
    mean = known[metric]["mean"]
    if mean is None:
        raise InputError(f"optimized_metric={metric}: is not defined for this run")
    return float(mean)


def conclude(
    sweep: Sweep, jobs: Sequence[Sequence[str]], results: Sequence[Result], seconds: float
) -> Document:
    """The document of a finished multirun, and its CSV."""
    from icl.runs.atomic import write_bytes, writing

    varying = [[o for o in job if len(jobs) == 1 or not all(o in other for other in jobs)] for job in jobs]
    summary = [row for job, result in zip(varying, results, strict=True) for row in _rows(job, result)]
    path = sweep.folder / "summary.csv"
    with writing(sweep.outputs):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, _csv(summary).encode())
    failed = sum(result["status"] == "failed" for result in results)
    return {
        "jobs": len(results),
        "done": len(results) - failed,
        "cached": sum(bool(result["document"].get("cached")) for result in results),
        "failed": failed,
        "seconds": seconds,
        "summary": summary,
        "sweep_csv": str(path),
        "results": [{"overrides": job, **result} for job, result in zip(varying, results, strict=True)],
    }


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
