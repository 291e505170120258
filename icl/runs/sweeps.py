"""A sweep on disk: its jobs, how far each of them is, and the table of what they found.

    OUTPUTS/sweeps/FINGERPRINT/
        sweep.json   the jobs, written before the first of them starts
        sweep.csv    a row for each job and seed
        wandb_sweep.yaml   the swept keys for `wandb sweep`, if requested

The fingerprint is that of the jobs themselves. The outcome of a job is what it returned to the command that
ran it, and later what its own record says, wherever and by whatever launcher it ran, so that there is nothing
here to get out of step; neither file holds a time. A record that other code made is stale and has no numbers.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icl.errors import InputError, Unavailable, nearest
from icl.redact import redact
from icl.runs import atomic, documents, json_records, layout
from icl.runs.intervals import interval_fields
from icl.runs.lock import is_live
from icl.runs.record import complaint
from icl.text import csv_text

if TYPE_CHECKING:
    import pandas

SWEEPS, PLAN, TABLE, WANDB = "sweeps", "sweep.json", "sweep.csv", "wandb_sweep.yaml"
SEEDS = ("seed", "seeds")
STATES = ("done", "running", "interrupted", "failed", "stale", "waiting")
DEFAULT_METRICS = ("exact_risk", "loss")  # the first that is defined throughout decides which is best
# Keys of a config that no number depends on.
KEYS_WITHOUT_EFFECT = (
    "format",
    "force",
    "verbose",
    "paths",
    "logger",
    "hydra",
    "cluster",
    "best_by",
    "sweep",
)

Row = dict[str, Any]
DigestOf = Callable[[Mapping[str, Any], Path], str | None]  # icl.runs.code.current_digest
Metrics = Mapping[str, Mapping[str, float | None]]  # by name and seed


@dataclass(frozen=True)
class SweptJob:
    """One job: a run of these seeds, or a check or figure, which has none. Jobs of one `group` differ in
    their seeds alone. One that a search proposed in vain has an `error` and is nothing else."""

    overrides: tuple[str, ...]
    id: str = ""
    fingerprint: str = ""
    group: str = ""
    seeds: tuple[int, ...] = ()
    error: str = ""


@dataclass(frozen=True)
class Outcome:
    """State of a job; its numbers by metric and seed ("" where there are no seeds), once it is done."""

    state: str
    path: Path
    metrics: Metrics = field(default_factory=dict, repr=False)
    error: str = ""


class Table(list[Row]):
    """Rows, of sweep.csv or of a figure."""

    def to_pandas(self) -> pandas.DataFrame:
        try:
            import pandas
        except ImportError:
            raise Unavailable("to_pandas needs pandas: pip install 'icl-theory[notebook]'") from None
        return pandas.DataFrame(list(self))


@dataclass(frozen=True)
class StoredSweep:
    """Jobs of one kind (train, check or figure) in the outputs folder that `folder` lies in."""

    folder: Path
    kind: str
    jobs: tuple[SweptJob, ...]
    metric: str | None = None  # that a search goes by
    name: str = ""  # that the user gave it

    @property
    def outputs(self) -> Path:
        return self.folder.parent.parent

    def write(self) -> None:
        """Write the list of jobs, unless it is there."""
        plan = {
            "schema": layout.SCHEMA, "kind": self.kind, "metric": self.metric, "name": self.name,
            "jobs": [asdict(job) for job in self.jobs],
        }  # fmt: skip
        plan = documents.to_json(redact(plan))
        if documents.read_record(self.folder / PLAN) == plan:
            return
        with atomic.writing(self.outputs):
            self.folder.mkdir(parents=True, exist_ok=True)
            documents.write_record(self.folder / PLAN, plan)

    def outcome(self, job: SweptJob, digest_of: DigestOf) -> Outcome:
        """Return the outcome of a job by its record; `digest_of(record, outputs)` is the digest that it would
        have now, None if that is not known."""
        if job.error:
            return Outcome("failed", self.folder, error=job.error)
        read = _of_run if self.kind == "train" else _of_document
        return read(self._path(job), lambda record: digest_of(record, self.outputs))

    def outcome_of(self, job: SweptJob, metrics: Metrics, error: str = "") -> Outcome:
        """Return the outcome of a job by the numbers that it returned."""
        return Outcome("failed" if error else "done", self._path(job), metrics, error)

    def _path(self, job: SweptJob) -> Path:
        """Return a run's folder, or the file of a check or figure."""
        kind = layout.RUNS if self.kind == "train" else f"{self.kind}s"
        path = layout.record_path(self.outputs, kind, job.id, job.fingerprint)
        return path.parent if self.kind == "train" else path

    @property
    def keys(self) -> list[str]:
        """Swept keys: those whose values differ between jobs; of a single job all that are given."""
        return [key for key in self._varying if key not in SEEDS]

    @functools.cached_property
    def _varying(self) -> list[str]:
        given = [_values(job.overrides) for job in self.jobs]
        names = dict.fromkeys(name for values in given for name in values)
        first = given[0] if given else {}
        return [
            name
            for name in names
            if len(given) == 1 or any(other.get(name) != first.get(name) for other in given)
        ]

    def own_overrides(self, job: SweptJob) -> list[str]:
        """Return the swept keys as they were typed."""
        return [override for override in job.overrides if _key(override) in self._varying]

    def table(self, outcomes: Sequence[Outcome]) -> Table:
        """Return a row for each job and seed; numbers are missing where a job is not done."""
        metrics = list(dict.fromkeys(name for outcome in outcomes for name in outcome.metrics))
        keys, rows = self.keys, Table()
        for job, outcome in zip(self.jobs, outcomes, strict=True):
            given = _values(job.overrides)
            for seed in job.seeds or [None]:
                row: Row = {key: given.get(key, "") for key in keys}
                row |= {"seed": seed, "run_dir": str(outcome.path), "fingerprint": job.fingerprint}
                at = "" if seed is None else str(seed)
                rows.append(row | {name: outcome.metrics.get(name, {}).get(at) for name in metrics})
        return rows

    def write_table(self, rows: Sequence[Row]) -> Path:
        """Write the rows to sweep.csv, unless they are there; floats read back bit for bit."""
        content = (csv_text(redact(list(rows))) if rows else "").encode()
        path = self.folder / TABLE
        with contextlib.suppress(OSError):
            if path.read_bytes() == content:
                return path
        with atomic.writing(self.outputs):
            self.folder.mkdir(parents=True, exist_ok=True)
            atomic.write_bytes(path, content)
        return path

    def write_wandb(self) -> Path:
        """Return a W&B sweep configuration over the same keys, with the same objective."""
        if self.kind != "train":
            raise InputError(f"wandb: W&B sweeps over training runs; this is one of {self.kind}s")
        if not self._varying:
            raise InputError("wandb: this sweep has no swept key")
        import yaml

        given = [_values(job.overrides) for job in self.jobs]
        values = {key: list(dict.fromkeys(one[key] for one in given if key in one)) for key in self._varying}
        fixed = [o for o in self.jobs[0].overrides if _key(o) in given[0] and _key(o) not in values]
        document = {
            "program": "icl",
            "command": ["${env}", "icl", "train", *fixed, "${args_no_hyphens}"],
            "method": "bayes" if self.metric else "grid",
            "metric": {"name": self.metric or DEFAULT_METRICS[0], "goal": "minimize"},
            "parameters": {
                key: {"values": [yaml.safe_load(v) for v in found]} for key, found in values.items()
            },
        }
        text = yaml.safe_dump(redact(document), sort_keys=False, allow_unicode=True)
        with atomic.writing(self.outputs):
            atomic.write_bytes(self.folder / WANDB, text.encode())
        return self.folder / WANDB

    def summary(self, outcomes: Sequence[Outcome], wanted: Container[str] | None = None) -> list[Row]:
        """Mean, interval and number of seeds of each metric (that is `wanted`), by configuration.

        What is not done yet does not count; where a seed has failed there is no mean: it is not averaged out.
        """
        together: dict[tuple[str, str], list[int]] = {}
        for i, job in enumerate(self.jobs):
            together.setdefault((job.id, job.group or job.fingerprint), []).append(i)
        found = []
        for members in together.values():
            own = [o for o in self.own_overrides(self.jobs[members[0]]) if _key(o) not in SEEDS]
            names = dict.fromkeys(name for i in members for name in outcomes[i].metrics)
            for name in names if wanted is None else filter(wanted.__contains__, names):
                values = self._by_seed(name, members, outcomes)
                count = sum(value is not None for value in values)
                found.append({"overrides": own, "metric": name, **interval_fields(values), "count": count})
        return found

    def _by_seed(
        self, metric: str, members: Sequence[int], outcomes: Sequence[Outcome]
    ) -> list[float | None]:
        values: dict[str, float | None] = {}
        for i in members:
            known = outcomes[i].metrics.get(metric, {})
            failed = outcomes[i].state == "failed"
            values |= {str(seed): None for seed in self.jobs[i].seeds} if failed else known
        return list(values.values())

    def best(self, summary: Sequence[Row]) -> Row | None:
        """Return the configuration with the least mean of the objective."""
        for metric in [self.metric] if self.metric else DEFAULT_METRICS:
            rows = [row for row in summary if row["metric"] == metric]
            defined = [row for row in rows if row["mean"] is not None]
            if defined:
                return dict(min(defined, key=lambda row: row["mean"]))
        return None

    def best_by(self, summary: Sequence[Row], keys: Sequence[str]) -> list[Row]:
        """Return the best configuration among those that share the values of these swept keys, with these
        values as `group`."""
        groups: dict[tuple[str, ...], list[Row]] = {}
        for row in summary:
            given = _values(row["overrides"])
            groups.setdefault(tuple(given.get(key, "") for key in keys), []).append(row)
        found = ((values, self.best(rows)) for values, rows in groups.items())
        return [
            {"group": dict(zip(keys, values, strict=True)), **best}
            for values, best in found
            if best is not None
        ]


def grouping_keys(best_by: Any, keys: Sequence[str]) -> list[str]:
    """Return the setting `best_by`: null, one of a sweep's `keys`, or a list of them."""
    named = [best_by] if isinstance(best_by, str) else best_by or []
    for name in named if isinstance(named, list) else [best_by]:
        if name not in keys:
            known = ", ".join(keys) or "none, no key is swept but seeds"
            raise InputError(f"best_by={name}: must be one of {known}{nearest(str(name), keys)}")
    return list(dict.fromkeys(named))


def read_sweep(path: str | Path) -> StoredSweep:
    """Return the sweep in this folder, or the one that this file belongs to."""
    folder = Path(path).absolute()
    folder = folder.parent if folder.name in (PLAN, TABLE) else folder
    plan = documents.read_record(folder / PLAN)
    if plan is None or plan.get("schema") != layout.SCHEMA or folder.parent.name != SWEEPS:
        raise InputError(f"sweep={path}: must be the folder of a sweep, such as outputs/sweeps/FINGERPRINT")
    jobs = tuple(
        SweptJob(**{**job, "overrides": tuple(job["overrides"]), "seeds": tuple(job["seeds"])})
        for job in plan["jobs"]
    )
    return StoredSweep(folder, plan["kind"], jobs, plan["metric"], plan.get("name", ""))


def stored_sweeps(outputs: Path) -> list[Path]:
    return sorted(path.parent for path in (outputs / SWEEPS).glob(f"*/{PLAN}"))


def metrics_of(document: Mapping[str, Any]) -> Metrics:
    """Return the numbers of a job's document: a run's by seed, a check's without one, a figure's none."""
    if "metrics" in document:
        return {sys.intern(k): entry["by_seed"] for k, entry in document["metrics"].items()}
    measured = document.get("measured", {})
    return {k: {"": v} for k, v in measured.items() if isinstance(v, int | float)}


def _of_run(folder: Path, now: Callable[[Row], str | None]) -> Outcome:
    run = documents.read_record(folder / "run.json")
    if run is None:
        return Outcome("waiting", folder)
    if run.get("status") == "done" and complaint(folder, run) is None:
        if now(run) not in (None, run.get("digest")):
            return Outcome("stale", folder)
        error = run["notes"][-1] if run.get("diverged") else ""
        return Outcome("failed" if error else "done", folder, metrics_of(run), error)
    if run.get("status") == "failed":
        return Outcome("failed", folder, error=error_of_traceback(folder / "traceback.txt"))
    return Outcome("running" if is_live(folder / "lock") else "interrupted", folder)


def _of_document(path: Path, now: Callable[[Row], str | None]) -> Outcome:
    record = json_records.read(path)
    if record is None or not isinstance(record.get("document"), dict):
        return Outcome("running" if is_live(path.with_suffix(".lock")) else "waiting", path)
    if now(record) not in (None, record.get("digest")):
        return Outcome("stale", path)
    return Outcome("done", path, metrics_of(record["document"]))


def error_of_traceback(path: Path) -> str:
    """Return the last line of a traceback."""
    try:
        lines = path.read_text(encoding="utf-8").strip().splitlines()
    except OSError:
        return ""
    # An exception's message may have lines of its own; the error begins after the last line of a frame.
    frames = [i for i, line in enumerate(lines) if line.startswith("  ")]
    return lines[min(frames[-1] + 1, len(lines) - 1)] if frames else "".join(lines[-1:])


def _key(override: str) -> str:
    return override.partition("=")[0].lstrip("+")


def _values(overrides: Sequence[str]) -> dict[str, str]:
    pairs = (override.partition("=") for override in overrides)
    named = {key.lstrip("+"): value for key, _, value in pairs}
    return {key: value for key, value in named.items() if not has_no_effect(key)}


def has_no_effect(key: str) -> bool:
    """Return whether no number depends on a config key, such as paths.outputs or hydra/launcher."""
    return key.partition(".")[0].partition("/")[0] in KEYS_WITHOUT_EFFECT
