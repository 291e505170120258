"""Many jobs of one verb: all validated before the first starts, failures kept apart, one document."""

from __future__ import annotations

import functools
import os
import re
import sys
import traceback
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from icl.config.compose import Composed
from icl.config.logger import LoggerSettings, under_agent
from icl.config.search_path import TORCHRUN, ConfigDirs
from icl.config.session import Session, keep_caches_in, parse_session
from icl.config.values import processes
from icl.errors import InputError, Interrupted, full_errors, nearest, one_line, whole
from icl.jobs.execution.cluster import requeue_on_timeout
from icl.jobs.execution.hydra_multirun import Result
from icl.jobs.exit_codes import FAILED, exit_code
from icl.jobs.requests.parse import OWN, parse
from icl.jobs.requests.request import Document, Request, lookup_or_validate, run_request
from icl.jobs.stored.run_names import grouped
from icl.jobs.stored.sweep_status import sweep_document, title
from icl.loggers.logged_once import DocumentLogger
from icl.loggers.run_log import DocumentLog
from icl.redact import holds_secret
from icl.runs.code import current_digest
from icl.runs.documents import read_record
from icl.runs.fingerprint import fingerprint
from icl.runs.metric_kinds import of_one_matrix
from icl.runs.sweeps import (
    KEYS_WITHOUT_EFFECT,
    PLAN,
    SWEEPS,
    Outcome,
    StoredSweep,
    SweptJob,
    grouping_keys,
    metrics_of,
)

OPTIMISERS = ("optuna", "ax", "nevergrad")  # Hydra's sweepers that want a number back
_MOST_ROWS = 10_000  # of a table in W&B
LONGEST_NAME = 100  # of a sweep, in characters
MANY = 1000  # jobs: of more of them no document is kept whole


class JobFailed(Exception):
    """The value that a sweeper gets for a job that failed."""


@dataclass(frozen=True)
class Job:
    """A job that can be run, or that is done: then `result` says how it ended."""

    swept: SweptJob
    scale: str
    place: tuple[Path, str]
    metric: str | None
    name: str
    result: Result | None


class PendingJob(NamedTuple):
    request: Request
    session: Session
    composed: Composed


@dataclass
class Sweep:
    """The jobs of a multirun of `kind`: of a grid, all known before the first starts, or of a search."""

    kind: str
    configs: ConfigDirs
    pid: int = field(default_factory=os.getpid)  # of the process that runs icl
    fingerprint: str = ""
    outputs: Path = Path()
    form: str = "text"
    metric: str | None = None
    best_by: Any = None
    name: str = ""  # sweep.name
    scale: str = ""
    logger: LoggerSettings = field(default_factory=lambda: LoggerSettings(mode="none"))
    launcher: str = "basic"
    places: tuple[int, int] = (1, 1)  # tasks on each node, and nodes, of a job
    jobs: list[SweptJob] = field(default_factory=list)
    _pending: dict[tuple[str, ...], PendingJob] = field(default_factory=dict)  # what is not done
    _known: dict[Any, Any] = field(default_factory=dict)  # what the jobs' requests share

    @property
    def folder(self) -> Path:
        return self.outputs / SWEEPS / self.fingerprint

    @property
    def stored(self) -> StoredSweep:
        return StoredSweep(self.folder, self.kind, tuple(self.jobs), self.metric, self.name)

    @functools.cached_property
    def group(self) -> str:
        """W&B's group of all jobs, also of those that a search adds."""
        return grouped(title(self.stored), self.fingerprint)

    def grid(self, jobs: Sequence[Sequence[str]], composed: Iterable[Composed]) -> list[Result | None]:
        found = [self._validated(job, one, len(jobs)) for job, one in zip(jobs, composed, strict=True)]
        if not found:
            raise InputError("-m: a range or a glob without a value leaves no job")
        if len({(*job.place, job.metric, job.name) for job in found}) != 1:
            raise InputError(
                "paths.outputs, format, optimized_metric, sweep.name: must be the same in all jobs"
            )
        swept = [job.swept for job in found]
        if len({(job.swept.id, job.swept.fingerprint, job.scale) for job in found}) < len(found):
            raise InputError(f"-m: two jobs are one and the same {self.kind}")
        self.jobs, self.metric, self.name = swept, found[0].metric, found[0].name
        grouping_keys(self.best_by, self.stored.keys)
        self._settle(*found[0].place, {"jobs": [job.fingerprint for job in swept]})
        return [job.result for job in found]

    def search(self, composed: Composed, sweeper: Any, swept: Sequence[str]) -> None:
        name = composed.choices.get("hydra/sweeper")
        self.metric, self.name = _objective_name(composed), _name(composed)
        if name in OPTIMISERS and self.metric is None:
            raise InputError(f"hydra/sweeper={name}: needs optimized_metric=exact_risk, or another metric")
        session = parse_session(self.kind, OWN[self.kind], composed, self.configs)
        given = sorted(o for o in swept if re.split("[.=]", o.lstrip("+~"))[0] not in KEYS_WITHOUT_EFFECT)
        given = [o for o in given if not o.startswith("search.trials=")]  # more of them continue a search
        self._settle(session.outputs, composed.settings["format"], {"sweeper": sweeper, "overrides": given})

    def validate_job(self, job: Sequence[str], composed: Composed) -> Result | None:
        found = self._validated(job, composed, len(self.jobs))
        if found.place != (self.outputs, self.form):
            raise InputError("paths.outputs, format: must be the same in all jobs of a multirun")
        self.jobs.append(found.swept)
        return found.result

    def begin(self) -> None:
        self.stored.write()

    def bind_sweep(self, job: JobFunction) -> JobFunction:
        return replace(job, group=self.group)

    def failed_validation(self, job: Sequence[str], error: InputError) -> Result:
        result = _failure(error)
        self.jobs.append(SweptJob(tuple(job), error=result["error"]))
        return result

    def failed(self, error: Exception) -> Result:
        return _failure(error)

    def launched_by(self, launcher: str, settings: Mapping[str, Any]) -> None:
        if str(settings["_target_"]).endswith(".Vectorized"):
            launcher = "vectorized"  # whatever option names it
        self.launcher = launcher
        self.places = (settings.get("tasks_per_node", 1), settings.get("nodes", 1))
        if launcher != "vectorized":
            return
        if self.kind != "train":
            raise InputError(f"hydra/launcher=vectorized: is for icl train; use joblib for a {self.kind}")
        others = [name for name in settings if name not in ("_target_", "max_replicas")]
        if others:
            raise InputError(
                f"hydra.launcher.{others[0]}: hydra/launcher=vectorized trains all jobs in this process and "
                "has nothing to send to a cluster; leave one of the two away"
            )
        if settings.get("max_replicas") is not None:
            whole("hydra.launcher.max_replicas", settings["max_replicas"], 1)

    def run_vectorized(self, jobs: Sequence[Sequence[str]], max_replicas: int | None) -> list[Result]:
        from icl.jobs.execution.vectorized import run_vectorized

        pending = [self._pending.pop(tuple(job)) for job in jobs]
        requests: Any = [one.request for one in pending]
        session = replace(pending[0].session, group=self.group)
        found = run_vectorized(requests, session, max_replicas)
        return [
            _failed(document, one.composed)
            if isinstance(document, Exception)
            else _success(document, one.composed)
            for one, document in zip(pending, found, strict=True)
        ]

    def objective_value(self, result: Result) -> Any:
        if result["status"] == "interrupted":
            raise Interrupted(result["exit_code"] - 128)
        return JobFailed(result["error"]) if result["status"] == "failed" else result["objective"]

    def _refuse_places(self, trainer: Mapping[str, Any]) -> None:
        """Refuse a run over several processes where nothing would start them."""
        devices, nodes = processes(trainer["devices"], 1), trainer["num_nodes"]
        key = f"trainer.devices={devices} trainer.num_nodes={nodes}"
        if TORCHRUN in os.environ:
            raise InputError(
                "-m: torchrun starts the processes of one run; without it each job starts its own"
            )
        if self.launcher == "submitit_slurm":
            if self.places != (devices, nodes):
                raise InputError(
                    f"{key}: need hydra.launcher.tasks_per_node={devices} and nodes={nodes}, "
                    f"which are {self.places[0]} and {self.places[1]}; cluster=slurm sets them"
                )
        elif nodes > 1:
            raise InputError(f"{key}: hydra/launcher={self.launcher} has one node; use cluster=slurm")
        elif self.places != (1, 1):
            raise InputError("hydra.launcher.tasks_per_node: must be 1; a job starts its processes itself")
        elif self.launcher == "vectorized" and devices > 1:
            raise InputError(f"{key}: hydra/launcher=vectorized trains in one process; use another launcher")

    def compact(self, result: Result) -> Result:
        return _brief(result, len(self.jobs))

    def _validated(self, job: Sequence[str], composed: Composed, count: int) -> Job:
        request, session = parse(self.kind, composed, self.configs, self._known)
        if self.kind == "train":
            self.best_by = composed.settings["best_by"]
            self._refuse_places(composed.settings["trainer"])
        if session.outputs not in self._known:  # asks for many files
            keep_caches_in(session.outputs)
            self._known[session.outputs] = True
        self.logger, self.scale = session.logger, composed.settings["scale"]
        document = lookup_or_validate(request, session)
        if document is None:
            self._pending[tuple(job)] = PendingJob(request, session, composed)
        id = f"{request.id}/{composed.settings['scale']}" if self.kind == "figure" else request.id
        group, seeds = getattr(request, "group", ""), getattr(request, "seeds", ())
        return Job(
            swept=SweptJob(tuple(job), id, request.identity, group, seeds),
            scale=composed.settings["scale"],
            place=(session.outputs, composed.settings["format"]),
            metric=_objective_name(composed),
            name=_name(composed),
            result=None if document is None else _brief(_success(document, composed), count),
        )

    def _settle(self, outputs: Path, form: str, about: Mapping[str, Any]) -> None:
        self.outputs, self.form, self.fingerprint = outputs, form, fingerprint(about)
        if not self.name:  # the one that it was given before
            self.name = (read_record(self.folder / PLAN) or {}).get("name", "")


@dataclass(frozen=True)
class JobFunction:
    """Job function of a launcher. A failure is returned, not raised."""

    kind: str
    configs: ConfigDirs
    pid: int
    group: str = ""  # W&B's group of the sweep, once it is known

    def __call__(self, composed: Composed) -> Result:
        with requeue_on_timeout():
            return self._run(composed)

    def _run(self, composed: Composed) -> Result:
        try:
            request, session = parse(self.kind, composed, self.configs)
            return _success(run_request(request, replace(session, group=self.group)), composed)
        except (Interrupted, KeyboardInterrupt) as error:
            from icl.training.interrupts import end_of_job

            signum = error.signum if isinstance(error, Interrupted) else 2
            if os.getpid() == self.pid or signum == end_of_job():
                raise
            return {"status": "interrupted", "exit_code": 128 + signum, "document": {}}
        except BaseException as error:
            return _failed(error, composed)


def _failed(error: BaseException, composed: Composed) -> Result:
    print(f"icl: job failed: {type(error).__name__}: {one_line(error)}", file=sys.stderr)
    if composed.settings.get("verbose") is True or full_errors():
        traceback.print_exception(error)
    return _failure(error)


def _success(document: Document, composed: Composed) -> Result:
    if not document:  # of a run that another process keeps
        return {"status": "done", "exit_code": 0, "document": {}, "objective": None}
    returned = {"document": document, "measured": metrics_of(document)}
    if document.get("status") == "failed":  # in some seeds; what the others made of it is there
        return {"status": "failed", "exit_code": FAILED, "error": document["error"], **returned}
    objective = _objective(document, _objective_name(composed))
    return {"status": "done", "exit_code": exit_code(document), "objective": objective, **returned}


def _brief(result: Result, count: int) -> Result:
    """Drop the numbers of one of very many jobs: they are in its record and in sweep.csv."""
    if count <= MANY:
        return result
    document = {k: v for k, v in result["document"].items() if not isinstance(v, dict | list)}
    return {**result, "document": document}


def _at_the_end(result: Result, outcome: Outcome) -> Result:
    """Return a result as it is shown, without the numbers of the table."""
    shown = {key: value for key, value in result.items() if key != "measured"}
    is_lost = shown["status"] == "done" and outcome.state == "failed"
    return {**shown, "status": "failed", "exit_code": FAILED, "error": outcome.error} if is_lost else shown


def _failure(error: BaseException) -> Result:
    reason = f"{type(error).__name__}: {error}"
    return {"status": "failed", "exit_code": FAILED, "document": {}, "error": reason}


def _objective_name(composed: Composed) -> str | None:
    """Return the metric that a sweeper optimizes."""
    if composed.choices.get("hydra/sweeper") == "search":
        return str(composed.settings["search"]["objective"])
    return composed.settings.get("optimized_metric")


def _name(composed: Composed) -> str:
    """Return the name that the user gives a sweep, "" if there is none."""
    name = (composed.settings.get("sweep") or {}).get("name")
    if not isinstance(name, str | None) or (name is not None and not 0 < len(name.strip()) <= LONGEST_NAME):
        raise InputError(f"sweep.name={name}: must be a text of 1 to {LONGEST_NAME} characters")
    if name is not None and holds_secret(name):
        raise InputError("sweep.name: holds what looks like a password or a key; W&B's group is named so")
    return (name or "").strip()


def _objective(document: Document, metric: str | None) -> float | None:
    """Return the mean over seeds of the metric that a sweeper optimizes."""
    if metric is None:
        return None
    known = document["metrics"]
    if metric not in known:
        raise InputError(f"optimized_metric={metric}: no such metric{nearest(metric, known)}")
    mean = known[metric]["mean"]
    if mean is None:
        raise InputError(f"optimized_metric={metric}: is not defined for this run")
    return float(mean)


def summarize(sweep: Sweep, results: Sequence[Result], seconds: float) -> Document:
    """Return the document of a finished multirun, and write its CSV. A job that is not done is a failure."""
    stored = sweep.stored
    outcomes = [_outcome(stored, job, result) for job, result in zip(stored.jobs, results, strict=True)]
    results = [_at_the_end(*pair) for pair in zip(results, outcomes, strict=True)]
    own = [stored.own_overrides(job) for job in stored.jobs]
    document = sweep_document(stored, outcomes, grouping_keys(sweep.best_by, stored.keys))
    _log(sweep, document)
    return {
        **document,
        "cached": sum(bool(result["document"].get("cached")) for result in results),
        "seconds": seconds,
        "results": [{"overrides": job, **result} for job, result in zip(own, results, strict=True)],
    }


def _log(sweep: Sweep, document: Document) -> None:
    """Log the table of a sweep to W&B: a row for each configuration and metric. A run of W&B's own sweep has
    no sweep of its own."""
    if under_agent():
        return
    numbers = [row for row in document["summary"] if not of_one_matrix(row["metric"])][:_MOST_ROWS]
    columns = ["configuration", "metric", "mean", "low", "high", "count"]
    rows = [[" ".join(row["overrides"]) or "all", *(row[name] for name in columns[1:])] for row in numbers]
    content = {"states": document["states"], "rows": rows}
    id = next((job.id for job in sweep.jobs if job.id), sweep.kind)
    about = (id, document["name"], sweep.scale, sweep.fingerprint, content, sweep.group)
    logger = DocumentLogger(sweep.logger, sweep.outputs, "sweep", *about)

    def write(log: DocumentLog) -> None:
        log.summary(document["states"])
        log.table("summary", columns, rows)

    config = {"sweep": sweep.fingerprint, "jobs": document["jobs"]}
    logger.log(config, write, lambda line: print(line, file=sys.stderr))


def _outcome(stored: StoredSweep, job: SweptJob, result: Result) -> Outcome:
    """Return the outcome that the job returned, whatever has become of its record since; where it returned no
    numbers, the one in its record, or the error that it reported."""
    if result["document"]:
        return stored.outcome_of(job, result["measured"], result.get("error", ""))
    found = stored.outcome(job, current_digest)
    if result["status"] == "failed" and not found.error:
        return Outcome("failed", found.path, error=" ".join(result["error"].split()))
    if result["status"] == "done" and found.state != "done":
        return Outcome("failed", found.path, error=found.error or f"its record is {found.state} in the end")
    return found
