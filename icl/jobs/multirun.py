"""Many jobs of one verb: all validated before the first starts, failures kept apart, one document."""

from __future__ import annotations

import csv
import io
import os
import sys
import traceback
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from icl.config.compose import Composed
from icl.config.places import Configs
from icl.errors import InputError, Interrupted, full_errors, one_line
from icl.jobs.kinds import requested
from icl.jobs.outcome import FAILED, code_of
from icl.jobs.request import Document, obtain, prepare
from icl.runs.fingerprint import fingerprint

Result = Mapping[str, Any]  # what a job left: status, exit_code, document


@dataclass
class Sweep:
    """The jobs of a multirun of `kind`; where and how they end is known once they are validated."""

    kind: str
    configs: Configs
    pid: int = field(default_factory=os.getpid)  # of the process that asked
    fingerprint: str = ""
    outputs: Path = Path()
    form: str = "text"

    def check(self, jobs: Sequence[Sequence[str]], composed: Iterable[Composed]) -> None:
        """Raises InputError if any job is unusable; nothing has been written then."""
        identities, places = [], set()
        for one in composed:
            request, session = requested(self.kind, one, self.configs)
            prepare(request, session)
            identities.append(request.identity)
            places.add((session.outputs, str(one.settings["format"])))
        if len(places) != 1:
            raise InputError("paths.outputs, format: must be the same in all jobs of a multirun")
        self.outputs, self.form = places.pop()
        self.fingerprint = fingerprint({"jobs": identities})


@dataclass(frozen=True)
class Attempt:
    """One job, wherever a launcher runs it. Over a failure it does not raise."""

    kind: str
    configs: Configs
    pid: int

    def __call__(self, composed: Composed) -> Result:
        try:
            request, session = requested(self.kind, composed, self.configs)
            document = obtain(request, session)
        except (Interrupted, KeyboardInterrupt) as error:
            if os.getpid() == self.pid:
                raise
            signum = error.signum if isinstance(error, Interrupted) else 2
            return {"status": "interrupted", "exit_code": 128 + signum, "document": {}}
        except BaseException as error:
            print(f"icl: job failed: {type(error).__name__}: {one_line(error)}", file=sys.stderr)
            if composed.settings.get("verbose") is True or full_errors():
                traceback.print_exception(error)
            reason = f"{type(error).__name__}: {error}"
            return {"status": "failed", "exit_code": FAILED, "document": {}, "error": reason}
        return {"status": "done", "exit_code": code_of(document), "document": document}


def conclude(
    sweep: Sweep, jobs: Sequence[Sequence[str]], results: Sequence[Result], seconds: float
) -> Document:
    """The document of a finished multirun, and its CSV."""
    from icl.runs.atomic import write_bytes, writing

    for result in results:
        if result["status"] == "interrupted":
            raise Interrupted(result["exit_code"] - 128)
    varying = [[o for o in job if len(jobs) == 1 or not all(o in other for other in jobs)] for job in jobs]
    summary = [row for job, result in zip(varying, results, strict=True) for row in _rows(job, result)]
    path = sweep.outputs / "sweeps" / sweep.fingerprint / "summary.csv"
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
