"""Many jobs of one verb, under any sweeper and launcher of Hydra's (`-m`).

Hydra lists and launches the jobs. Beside it stand three things: every job of a grid is validated before the
first starts, a job that fails ends no other, and what all of them have found is read from their records at
the end.
"""

from __future__ import annotations

import contextlib
import copy
import math
import os
import shutil
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.config_loader import ConfigLoader
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf, read_write

from hydra_plugins.icl._loader import share_compositions
from hydra_plugins.icl._wandb import log_sweep
from icl.config.compose import Composed, resolve, resolve_in_job
from icl.config.search_path import ConfigDirs
from icl.config.session import Session, keep_cache_in, parse_session
from icl.errors import InputError, full_errors, nearest, one_line, whole
from icl.jobs.execution.worker_signals import in_worker
from icl.jobs.exit_codes import FAILED, exit_code
from icl.jobs.requests.parse import OWN, parse
from icl.jobs.requests.request import Document, Request, lookup_or_validate, run_request
from icl.jobs.stored.sweep_status import sweep_document, title
from icl.loggers.names import grouped
from icl.redact import redact
from icl.runs import atomic
from icl.runs.fingerprint import fingerprint, has_no_effect
from icl.runs.sweeps import STATES, SWEEPS, Outcome, StoredSweep, SweptJob, metrics_of

_NOTE = "job-{}.txt"  # in the sweep's folder, while it runs: the error of a job


class Job(NamedTuple):
    """A job, and the document of its record if it was done before."""

    swept: SweptJob
    request: Request
    session: Session
    known: Document | None


@dataclass
class Shared:
    """Settings that all jobs of a sweep share, wherever they run: verb, the metric that a search goes by,
    W&B's group, and the sweep's folder, which is known when all jobs are validated."""

    kind: str
    configs: ConfigDirs
    metric: str | None = None
    group: str = ""
    folder: Path | None = None
    starter: int = field(default_factory=os.getpid)  # the process that runs icl


@dataclass
class Sweep:
    """The jobs of a multirun: of a grid, all known before the first starts, or of a search."""

    shared: Shared
    jobs: list[Job] = field(default_factory=list)
    folder: Path = Path()
    form: str = "text"
    launcher: str = "basic"
    is_search: bool = False
    on_start: Callable[[], Any] = lambda: None  # where it is known to be a multirun
    _known: dict[Any, Any] = field(default_factory=dict)  # what the jobs' requests share

    @property
    def stored(self) -> StoredSweep:
        jobs = tuple(job.swept for job in self.jobs)
        return StoredSweep(self.folder, self.shared.kind, jobs, self.shared.metric)

    def prepare(self, config: DictConfig, loader: ConfigLoader) -> None:
        """Validate all jobs of a grid. An InputError writes nothing."""
        hydra, kind = config.hydra, self.shared.kind
        if kind not in OWN:
            raise InputError(f"-m: icl {kind} is one job")
        self.launcher = hydra.runtime.choices["hydra/launcher"]
        if self.launcher == "vectorized":
            if kind != "train":
                raise InputError(f"hydra/launcher=vectorized: is for icl train; use joblib for a {kind}")
            if hydra.launcher.get("max_replicas") is not None:
                whole("hydra.launcher.max_replicas", hydra.launcher.max_replicas, 1)
        if self.launcher == "submitit_slurm" and not all(map(shutil.which, ("sbatch", "srun"))):
            raise InputError(
                "hydra/launcher=submitit_slurm: no sbatch and srun here; submitit_local needs none"
            )
        master = resolve(copy.deepcopy(config), loader)
        session = parse_session(kind, OWN[kind], master, self.shared.configs)
        self.form, self.shared.metric = master.settings["format"], master.settings.get("optimized_metric")
        typed = list(hydra.overrides.task)
        about: dict[str, Any]
        self.is_search = not hydra.sweeper._target_.endswith(".BasicSweeper")
        if not self.is_search:
            given = [f"{key}={value}" for key, value in (hydra.sweeper.params or {}).items()] + typed
            read = OverridesParser.create(loader).parse_overrides(given)
            try:
                jobs = BasicSweeper.split_arguments(read, None)[0]
            except ValueError as error:
                raise InputError(f"-m: {one_line(error)}") from error
            self.add(jobs, config, loader)
            about = {"jobs": [job.swept.fingerprint for job in self.jobs]}
        elif self.shared.metric is None:
            raise InputError("hydra/sweeper: needs optimized_metric=exact_risk, or another metric")
        else:
            own = [one for one in typed if not has_no_effect(one.lstrip("+~").partition("=")[0])]
            about = {"sweeper": OmegaConf.to_container(hydra.sweeper), "overrides": sorted(own)}
        self.folder = session.outputs / SWEEPS / fingerprint(about)
        self.shared.folder, self.shared.group = self.folder, grouped(title(self.stored), self.folder.name)
        with read_write(hydra.sweep):
            hydra.sweep.dir = str(self.folder)

    def add(self, jobs: Sequence[Sequence[str]], config: DictConfig, loader: ConfigLoader) -> None:
        """Validate jobs, each given by its overrides."""
        for job in jobs:
            composed = resolve(loader.load_sweep_config(config, list(job)), loader)
            self.jobs.append(self._validated(job, composed))
        if not self.jobs:
            raise InputError("-m: a range or a glob without a value leaves no job")
        if len({job.session.outputs for job in self.jobs}) != 1:
            raise InputError("-m: paths.outputs: must be the same in all jobs")
        different = {(job.swept.id, job.swept.fingerprint, job.request.scale) for job in self.jobs}
        if len(different) < len(self.jobs) and not self.is_search:
            raise InputError(f"-m: two jobs are one and the same {self.shared.kind}")

    def _validated(self, overrides: Sequence[str], composed: Composed) -> Job:
        request, session = parse(self.shared.kind, composed, self.shared.configs, self._known)
        count = getattr(request, "processes", 1)
        if count > 1 and self.launcher != "submitit_slurm":  # others start the whole sweep for each
            raise InputError(
                f"trainer.devices, trainer.num_nodes: {count} processes; under -m only "
                "hydra/launcher=submitit_slurm starts them"
            )
        keep_cache_in(session.outputs)
        document = lookup_or_validate(request, session)
        id = f"{request.id}/{request.scale}" if request.kind == "figure" else request.id
        swept = SweptJob(tuple(overrides), id, request.identity, getattr(request, "seeds", ()))
        return Job(swept, request, session, document)

    def run_vectorized(self, first: int, count: int, max_replicas: int | None) -> list[float | None]:
        """Run validated jobs, training those as one ensemble that can be, and return what a sweeper
        optimizes."""
        from hydra_plugins.icl._vectorized import train_together

        jobs = self.jobs[first : first + count]
        session = replace(jobs[0].session, group=self.shared.group)
        requests: Any = [job.request for job in jobs]
        trained = train_together(requests, session, max_replicas)

        def document(place: int) -> Document:
            job, outcome = jobs[place], trained.get(place)
            if isinstance(outcome, Exception):
                raise outcome
            return job.known or run_request(
                job.request, replace(session, force=session.force and not outcome)
            )

        return [_value(self.shared, first + place, partial(document, place)) for place in range(count)]

    def document(self, seconds: float) -> Document:
        """Return the document of the sweep, whose jobs have ended, and write its table."""
        results, outcomes, stored = [], [], self.stored
        for number, job in enumerate(self.jobs):
            found, document, note = stored.outcome(job.swept), job.known or {}, _note(self.folder, number)
            with contextlib.suppress(InputError):
                made = None if job.known else job.request.lookup(job.session)
                if made is not None and made.is_answer:
                    took = made.record.get("seconds", made.document["seconds"])
                    document = {**made.document, "cached": False, "seconds": took}
            error = document.get("error") or (note.read_text(encoding="utf-8") if note.exists() else "")
            note.unlink(missing_ok=True)
            if not document:  # it has left no record
                error = found.error or error or f"its record is {found.state} in the end"
            outcome = Outcome("failed" if error else "done", found.path, metrics_of(document), error)
            result = {
                "overrides": stored.own_overrides(job.swept),
                "status": outcome.state,
                "exit_code": FAILED if error else exit_code(document),
                "document": document,
            }
            results.append(result | ({"error": error} if error else {}))
            outcomes.append(outcome)
        known = sum(job.known is not None for job in self.jobs)
        about = {"cached": known, "seconds": seconds, "results": results}
        shown = {**sweep_document(stored, outcomes), **about}
        if known < len(self.jobs):
            session = replace(self.jobs[0].session, group=self.shared.group)
            log_sweep(stored, outcomes, shown, self.jobs[0].request.scale, session)
        return shown

    def status(self) -> tuple[int, int, str]:
        """Return how many jobs there are, how many have ended, and in words how far they are."""
        count, stored = len(self.jobs), self.stored
        if self.shared.folder is None:
            return count, 0, f"{count} jobs validated"
        states = Counter(stored.outcome(job).state for job in stored.jobs)
        told = [f"{states[state]} {state}" for state in STATES if states[state]]
        return count, states["done"] + states["failed"], f"{count} jobs: {', '.join(told)}"


def run_job(shared: Shared, cfg: DictConfig) -> float | None:
    """Run a job, wherever the launcher says, and return what a sweeper optimizes."""
    composed, number = resolve_in_job(cfg), HydraConfig.get().job.num

    def document() -> Document:
        request, session = parse(shared.kind, composed, shared.configs)
        return run_request(request, replace(session, group=shared.group))

    with in_worker(shared.starter) as begins:
        if begins:
            return _value(shared, number, document)
    return math.nan


def _value(shared: Shared, number: int, document: Callable[[], Document]) -> float | None:
    """Return what a sweeper optimizes: the mean over seeds of `optimized_metric`, nan where it is not
    defined. A failure is noted beside the sweep, and not raised."""
    try:
        found, metric = document(), shared.metric
        if metric is None or not found:
            return None
        if metric not in (known := found["metrics"]):
            raise InputError(f"optimized_metric={metric}: no such metric{nearest(metric, known)}")
        mean = known[metric]["mean"]
        return math.nan if mean is None else float(mean)
    except (Exception, SystemExit) as error:
        said = f"{type(error).__name__}: {one_line(error)}"
        print(f"icl: job failed: {said}", file=sys.stderr)
        if full_errors():
            traceback.print_exception(error)
        with contextlib.suppress(OSError):
            atomic.write_bytes(_note(shared.folder, number), redact(said).encode())
    return math.nan


def _note(folder: Path | None, number: int) -> Path:
    return (folder or Path()) / _NOTE.format(number)


# Hydra makes callback, launcher and sweeper without a way to hand them anything.
_current: Sweep | None = None


@contextlib.contextmanager
def in_progress(sweep: Sweep) -> Iterator[Sweep]:
    """Make it the sweep that Hydra's callback, launcher and sweeper speak to."""
    global _current
    before, _current = _current, sweep
    try:
        yield sweep
    finally:
        _current = before


def current() -> Sweep:
    if _current is None:
        raise InputError("hydra/launcher and hydra/sweeper of icl work below `icl` alone")
    return _current


class Validation(Callback):
    """Validates the jobs of `icl VERB -m` before the first starts. Hydra turns an exception into a warning
    here, so that one that ends the sweep is the cause of a SystemExit."""

    def on_multirun_start(self, config: DictConfig, **_: Any) -> None:
        if _current is None:
            return
        _current.on_start()
        try:
            loader = GlobalHydra.instance().config_loader()
            share_compositions(loader)
            _current.prepare(config, loader)
            _current.stored.write()
            if _current.is_search or any(job.known is None for job in _current.jobs):
                for note in _current.folder.glob(_NOTE.format("*")):  # of an earlier time
                    note.unlink(missing_ok=True)
                return
        except Exception as error:
            raise SystemExit(2) from error
        self.on_multirun_end(config)  # of a sweep that was killed before its end
        raise SystemExit(0)  # nothing is left to run

    def on_multirun_end(self, config: DictConfig, **_: Any) -> None:
        """Remove what Hydra writes of the command as it was typed, secrets and all."""
        folder = _current.folder if _current is not None else config.hydra.sweep.dir
        Path(folder, "multirun.yaml").unlink(missing_ok=True)
