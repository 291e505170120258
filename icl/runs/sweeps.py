"""A sweep on disk: its jobs, how far each of them is, and the table of what they found.

    OUTPUTS/sweeps/FINGERPRINT/
        sweep.json   the jobs, written before the first of them starts
        sweep.csv    a row for each job and seed

The fingerprint is that of the jobs. The outcome of a job is what it returned to the command that ran it and,
later, what its own record says. A record that other code made is stale and has no numbers.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from icl.errors import InputError
from icl.metrics import metrics_csv, seed_interval
from icl.redact import redact
from icl.runs import atomic, documents, json_records, layout
from icl.runs.code import current_digest
from icl.runs.fingerprint import SEEDS, has_no_effect
from icl.runs.lock import is_live
from icl.runs.record import status_of

SWEEPS, PLAN, TABLE = "sweeps", "sweep.json", "sweep.csv"
STATES = ("done", "running", "interrupted", "failed", "stale", "waiting")
DEFAULT_METRICS = ("exact_risk", "risk_estimate", "loss")  # by which one is best, unless a sweep says so

Row = dict[str, Any]
Table = list[Row]  # of sweep.csv, or of a figure
Metrics = Mapping[str, Mapping[str, float | None]]  # by name and seed


@dataclass(frozen=True)
class SweptJob:
    """One job: a run of these seeds, or a check or figure, which has none."""

    overrides: tuple[str, ...]
    id: str
    fingerprint: str
    seeds: tuple[int, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """State of a job; its numbers by metric and seed ("" where there are no seeds), once it is done."""

    state: str
    path: Path
    metrics: Metrics = field(default_factory=dict, repr=False)
    error: str = ""


@dataclass(frozen=True)
class StoredSweep:
    """Jobs of one kind (train, check or figure) in the outputs folder that `folder` lies in."""

    folder: Path
    kind: str
    jobs: tuple[SweptJob, ...]
    metric: str | None = None  # that a search goes by

    @property
    def outputs(self) -> Path:
        return self.folder.parent.parent

    def write(self) -> None:
        """Write the list of jobs, unless it is there."""
        own = {"kind": self.kind, "metric": self.metric, "jobs": [asdict(job) for job in self.jobs]}
        plan = {"schema": layout.SCHEMA, **own}
        atomic.write_once(self.outputs, self.folder / PLAN, documents.sealed(redact(plan)))

    def outcome(self, job: SweptJob) -> Outcome:
        """Return the outcome of a job by its record."""
        path = self.path(job)
        if self.kind == "train":
            record = documents.read_record(path / "run.json")
            state, error = status_of(path, record) if record else ("waiting", "")
            state = "waiting" if state == "damaged" else state
        else:
            record, error = json_records.read(path), ""
            state = "running" if is_live(path.with_suffix(".lock")) else "waiting"
            state = "done" if record is not None else state
        if record is None or state not in ("done", "failed"):
            return Outcome(state, path)
        if state == "done" and current_digest(record, self.outputs) not in (None, record.get("digest")):
            return Outcome("stale", path)
        return Outcome(state, path, metrics_of(record if self.kind == "train" else record["document"]), error)

    def path(self, job: SweptJob) -> Path:
        """Return a run's folder, or the file of a check or figure."""
        kind = layout.RUNS if self.kind == "train" else f"{self.kind}s"
        path = layout.record_path(self.outputs, kind, job.id, job.fingerprint)
        shipped = path.parent.with_name(path.name)  # of a figure's own settings
        if kind == "figures" and (json_records.read(shipped) or {}).get("fingerprint") == job.fingerprint:
            return shipped
        return path.parent if self.kind == "train" else path

    @property
    def keys(self) -> list[str]:
        """Swept keys: those whose values differ between jobs; of a single job all that are given."""
        return [key for key in self._varying if key not in SEEDS]

    @functools.cached_property
    def _varying(self) -> list[str]:
        given = [_values(job.overrides) for job in self.jobs]
        names = dict.fromkeys(name for values in given for name in values)
        return [n for n in names if len(given) == 1 or any(one.get(n) != given[0].get(n) for one in given)]

    def own_overrides(self, job: SweptJob) -> list[str]:
        """Return the swept keys as they were typed."""
        return [override for override in job.overrides if _key(override) in self._varying]

    def table(self, outcomes: Sequence[Outcome]) -> Table:
        """Return a row for each job and seed; numbers are missing where a job is not done."""
        metrics = list(dict.fromkeys(name for outcome in outcomes for name in outcome.metrics))
        rows = []
        for job, outcome in zip(self.jobs, outcomes, strict=True):
            given = _values(job.overrides)
            swept = {key: given.get(key, "") for key in self.keys}
            for seed in job.seeds or [None]:
                place = self.path(job).relative_to(self.outputs).as_posix()
                of: Row = {"seed": seed, "run_dir": place, "fingerprint": job.fingerprint}
                at = "" if seed is None else str(seed)
                rows.append(swept | of | {name: outcome.metrics.get(name, {}).get(at) for name in metrics})
        return rows

    def write_table(self, rows: Table) -> Path:
        """Write the rows to sweep.csv, unless they are there; floats read back bit for bit."""
        content = metrics_csv(redact(rows)).encode()
        atomic.write_once(self.outputs, self.folder / TABLE, content)
        return self.folder / TABLE

    def summary(self, outcomes: Sequence[Outcome]) -> Table:
        """Return mean, interval and number of seeds of each metric, by configuration. What is not done yet
        does not count; where a seed has failed there is no mean: it is not averaged out."""
        together: dict[tuple[str, ...], list[tuple[SweptJob, Outcome]]] = {}
        for job, outcome in zip(self.jobs, outcomes, strict=True):
            own = [override for override in self.own_overrides(job) if _key(override) not in SEEDS]
            together.setdefault((job.id, *own), []).append((job, outcome))
        rows = []
        for (_, *own), members in together.items():
            for metric in dict.fromkeys(name for _, outcome in members for name in outcome.metrics):
                values: dict[str, float | None] = {}
                for job, outcome in members:
                    failed = dict.fromkeys(map(str, job.seeds))
                    values |= failed if outcome.state == "failed" else outcome.metrics.get(metric, {})
                count = sum(value is not None for value in values.values())
                found = seed_interval(list(values.values())) | {"count": count}
                rows.append({"overrides": own, "metric": metric, **found})
        return rows

    def best(self, summary: Sequence[Row]) -> Row | None:
        """Return the configuration with the least mean of the sweep's metric, or of the first that all have;
        `of` is how many there are but for those that failed, `passed` the metrics that only some have."""
        looked_at = (self.metric,) if self.metric else DEFAULT_METRICS
        found = [row for row in summary if row["mean"] is not None and row["metric"] in looked_at]
        every = len({tuple(row["overrides"]) for row in found})
        for place, metric in enumerate(looked_at):
            rows = [row for row in found if row["metric"] == metric]
            passed = [one for one in looked_at[:place] if any(row["metric"] == one for row in found)]
            if 0 < len(rows) == every:
                return min(rows, key=lambda r: r["mean"]) | {"of": every, "passed": passed}
        return None


def read_sweep(path: str | Path) -> StoredSweep:
    """Return the sweep in this folder, or the one that this file belongs to."""
    folder = Path(path).absolute()
    folder = folder.parent if folder.name in (PLAN, TABLE) else folder
    plan = documents.read_record(folder / PLAN)
    if plan is None or folder.parent.name != SWEEPS:
        raise InputError(f"sweep={path}: must be the folder of a sweep, such as outputs/sweeps/FINGERPRINT")
    try:
        jobs = [
            SweptJob(tuple(job["overrides"]), job["id"], job["fingerprint"], tuple(job["seeds"]))
            for job in plan["jobs"]
        ]
        return StoredSweep(folder, plan["kind"], tuple(jobs), plan["metric"])
    except (KeyError, TypeError) as error:
        raise InputError(f"sweep={path}: its {PLAN} is damaged") from error


def stored_sweeps(outputs: Path) -> list[Path]:
    return sorted(path.parent for path in (outputs / SWEEPS).glob(f"*/{PLAN}"))


def metrics_of(document: Mapping[str, Any]) -> Metrics:
    """Return the numbers of a job's document: a run's by seed, a check's without one, a figure's none."""
    if "metrics" in document:
        return {name: entry["by_seed"] for name, entry in document["metrics"].items()}
    return {k: {"": v} for k, v in document.get("measured", {}).items() if isinstance(v, int | float)}


def _key(override: str) -> str:
    return override.partition("=")[0].lstrip("+")


def _values(overrides: Sequence[str]) -> dict[str, str]:
    """Return what was typed by key, but what no number depends on."""
    return {_key(o): o.partition("=")[2] for o in overrides if not has_no_effect(_key(o))}
