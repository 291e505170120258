"""Hydra's own multirun of `icl VERB -m`, with any sweeper and any launcher.

A sweeper decides on jobs and hands them, all at once or batch by batch, to the launcher that the config
names. Put before that launcher, we see every job before it runs and what it gave back, whichever they are:
a job that cannot be used is refused before the first starts, and one that fails neither ends the others nor
gets lost on the way.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn, JobStatus, env_override
from hydra.types import HydraContext, RunMode
from omegaconf import DictConfig, OmegaConf, open_dict, read_write

from icl.config import allowed_packages, hydra_private
from icl.config.compose import Composed, Composer, hydra_config_set, hydra_session, resolve, resolve_in_job
from icl.config.explain import ERRORS
from icl.config.hydra_policy import BEFORE, validate_hydra
from icl.config.search_path import ConfigDirs
from icl.errors import InputError, Interrupted, one_line
from icl.jobs.execution.supervision import ParentHandle, supervise_children, supervised

Overrides = list[str]
Result = Mapping[str, Any]  # what a job left: status, exit_code, document
_INTERRUPTED = {"status": "interrupted", "exit_code": 128 + signal.SIGINT, "document": {}}
_ELSEWHERE = ("basic", "vectorized", "submitit_slurm")  # launchers: in this process, or beyond it
_MOST_JOBS = 100_000


class Jobs(Protocol):
    """The owner of the jobs of a multirun."""

    def grid(self, jobs: Sequence[Overrides], composed: Iterable[Composed]) -> Sequence[Result | None]:
        """Validate all jobs; return the results of those that are done. An InputError writes nothing."""

    def search(self, composed: Composed, sweeper: Any, swept: Sequence[str]) -> None:
        """Begin a search: the config without swept keys, the sweeper's settings, the swept overrides."""

    def validate_job(self, job: Overrides, composed: Composed) -> Result | None:
        """Return the result of a search's job if it is done. Raises InputError if it is unusable."""

    def begin(self) -> None:
        """Store the sweep: the jobs known so far are about to run."""

    def bind_sweep(self, job: Any) -> Any:
        """Return the job function, bound to this sweep."""

    @property
    def folder(self) -> Path:
        """Folder for a sweeper's or launcher's own files, once there are jobs."""

    def failed_validation(self, job: Overrides, error: InputError) -> Result:
        """Return the result of a search's job that failed validation."""

    def failed(self, error: Exception) -> Result:
        """Return the result of a job that failed before its task."""

    def launched_by(self, launcher: str, settings: Mapping[str, Any]) -> None:
        """Set the launcher that runs the jobs. Raises InputError if it cannot."""

    def run_vectorized(self, jobs: Sequence[Overrides], max_replicas: int | None) -> Sequence[Result]:
        """Run validated jobs, those that can be vectorized as one ensemble, and return their results."""

    def compact(self, result: Result) -> Result:
        """Return the part of a result that is kept until the end."""

    def objective_value(self, result: Result) -> Any:
        """Return what an optimizing sweeper gets: a number, or an exception."""


@dataclass(frozen=True)
class HydraTask:
    """The task function Hydra hands to a launcher, picklable. What it may build was fixed where it was made:
    hydra.job.env_set is in force when it is called."""

    job: Callable[[Composed], Any]
    allowed: tuple[str, ...] = field(default_factory=allowed_packages.allowed)
    parent: ParentHandle | None = None

    def __call__(self, cfg: DictConfig) -> Any:
        with allowed_packages.frozen_allowlist(self.allowed), supervised(self.parent) as begins:
            return self.job(resolve_in_job(cfg)) if begins else _INTERRUPTED


@dataclass
class Multirun:
    """`overrides` are the jobs so far, `results` what each gave back; `known`, of a grid alone, what is
    stored of its jobs already, which are not launched."""

    config: DictConfig
    context: HydraContext
    composer: Composer
    jobs: Jobs
    known: Sequence[Result | None] | None = None
    overrides: list[Overrides] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)

    def sweep(self, task: HydraTask) -> None:
        hydra = self.config.hydra
        launcher = hydra.runtime.choices["hydra/launcher"]
        if launcher == "submitit_slurm" and not all(map(shutil.which, ("sbatch", "srun"))):
            raise InputError(
                "hydra/launcher=submitit_slurm: no sbatch and srun here; submitit_local needs none"
            )
        with hydra_config_set(self.config):
            settings: Any = OmegaConf.to_container(hydra.launcher, resolve=True)
        self.jobs.launched_by(launcher, settings)
        watched = copy.deepcopy(self.config)
        with read_write(watched.hydra), open_dict(watched.hydra):
            watched.hydra.launcher = {"_target_": BEFORE}
        sweeper: Any = Plugins.instance().instantiate_sweeper(
            config=watched, hydra_context=self.context, task_function=task
        )
        swept = list(hydra.overrides.task)
        if hydra.sweeper._target_.endswith(".BasicSweeper"):
            parser = OverridesParser.create(config_loader=self.context.config_loader)
            params = [f"{key}={value}" for key, value in sweeper.params.items()]
            given = parser.parse_overrides([*params, *swept])
            try:
                _insist_on_a_list(given)
                jobs = sweeper.split_arguments(given, None)[0]
            except ValueError as error:
                raise InputError(f"-m: {one_line(error)}") from error
            self.known = self.jobs.grid(jobs, self._compose_jobs(jobs))
            if None not in self.known:  # nothing runs: the sweeper's own file need not be written
                self.launch(list(map(list, jobs)), 0, self.context, task)
                with contextlib.suppress(OSError):  # the folder may be read-only
                    self._sweepers_file.unlink(missing_ok=True)
                return
            setattr(sweeper, "validate_batch_is_legal", lambda _: None)  # noqa: B010, it has just been seen
        else:
            self.jobs.search(resolve(self.config), OmegaConf.to_container(hydra.sweeper), swept)
        _keep_files_in(self.jobs.folder, watched)
        try:
            sweeper.sweep(arguments=swept)
        except ERRORS:
            raise
        except Exception as error:
            if not any(result["status"] == "failed" for result in self.results):
                raise
            # The sweeper has given up over jobs that failed, which are listed at the end.
            print(f"icl: the sweep ends here: {type(error).__name__}: {one_line(error)}", file=sys.stderr)
        finally:
            self._sweepers_file.unlink(missing_ok=True)

    @property
    def _sweepers_file(self) -> Path:
        """Return where Hydra's basic sweeper keeps what was typed, secrets and all."""
        return self.jobs.folder / "multirun.yaml"

    def launch(
        self, jobs: list[Overrides], first: int, context: HydraContext, task: HydraTask
    ) -> Sequence[JobReturn]:
        """Run a batch of jobs by the chosen launcher, and return what the sweeper is to see."""
        known = self._lookup_results(jobs) if self.known is None else self.known[first : first + len(jobs)]
        self.jobs.begin()
        sent = [job for job, result in zip(jobs, known, strict=True) if result is None]
        back = iter(self._launched(sent, first, context, task) if sent else [])
        returns = [
            next(back) if result is None else JobReturn(job, status=JobStatus.COMPLETED, _return_value=result)
            for job, result in zip(jobs, known, strict=True)
        ]
        results = [self.jobs.compact(self._result(job_return)) for job_return in returns]
        self.overrides += jobs
        self.results += results
        for job_return, result in zip(returns, results, strict=True):
            answer = self.jobs.objective_value(result)
            fails = isinstance(answer, Exception) and self.known is None  # a grid goes on
            job_return.status = JobStatus.FAILED if fails else JobStatus.COMPLETED
            job_return.return_value = answer
        return returns

    def _launched(
        self, jobs: list[Overrides], first: int, context: HydraContext, task: HydraTask
    ) -> Sequence[JobReturn]:
        files = Path(tempfile.mkdtemp(prefix=".launcher-", dir=self.jobs.folder))
        _keep_files_in(files, self.config)
        chosen = self.config.hydra.runtime.choices["hydra/launcher"]
        is_near = chosen not in _ELSEWHERE
        parent = ParentHandle(files / "at_work", os.getpid()) if is_near else None
        try:
            started = replace(task, job=self.jobs.bind_sweep(task.job), parent=parent)
            launcher = Plugins.instance().instantiate_launcher(context, started, self.config)
            with supervise_children(parent):
                returns = launcher.launch(jobs, first)
            shutil.rmtree(files)  # submitit pickles what was typed
            return returns
        except Interrupted:
            shutil.rmtree(files, ignore_errors=True)
            raise
        finally:
            with contextlib.suppress(OSError):
                files.rmdir()  # if a worker has died, its logs stay

    def _compose_jobs(self, jobs: Sequence[Sequence[str]]) -> Iterator[Composed]:
        """Yield the configs of the jobs."""
        verb, own = self.config.hydra.job.config_name, list(self.config.hydra.overrides.hydra)
        for job in jobs:
            yield self.composer.compose(verb, [*own, *job])

    def run_vectorized(self, jobs: list[Overrides], max_replicas: int | None) -> Sequence[JobReturn]:
        """Run jobs, composed and validated already, for the launcher that vectorizes them."""
        set_by_hydra: Any = OmegaConf.to_container(self.config.hydra.job.env_set, resolve=True)
        with env_override(set_by_hydra):
            results = self.jobs.run_vectorized(jobs, max_replicas)
        return [
            JobReturn(job, status=JobStatus.COMPLETED, _return_value=result)
            for job, result in zip(jobs, results, strict=True)
        ]

    def _lookup_results(self, jobs: Sequence[Overrides]) -> list[Result | None]:
        """Return results known beforehand: of jobs that are done, and of unusable ones, which fail. In the
        first batch, before which nothing has run, an unusable job is refused."""
        known: list[Result | None] = []
        for job in jobs:
            try:
                known += [self.jobs.validate_job(job, composed) for composed in self._compose_jobs([job])]
            except InputError as error:
                if not self.results:
                    raise
                known.append(self.jobs.failed_validation(job, error))
        return known

    def _result(self, job_return: JobReturn) -> Result:
        value = job_return._return_value
        return value if job_return.status is JobStatus.COMPLETED else self.jobs.failed(value)


def _insist_on_a_list(parsed: Sequence[Override]) -> None:
    """Refuse overrides whose jobs cannot be listed before the first starts."""
    jobs = 1
    for override in parsed:
        if override.is_discrete_sweep():
            values = itertools.islice(override.sweep_string_iterator(), _MOST_JOBS + 1)
            jobs *= max(1, sum(1 for _ in values))
        if jobs > _MOST_JOBS:
            raise InputError(f"{override.input_line}: makes more than {_MOST_JOBS} jobs")


def _keep_files_in(folder: Path, config: DictConfig) -> None:
    with read_write(config.hydra.sweep):
        config.hydra.sweep.dir = str(folder)


_current: Multirun | None = None  # Hydra makes the launcher without a way to hand it anything


def current() -> Multirun:
    """Return the multirun in progress, for the launcher."""
    assert _current is not None, "works below `icl` alone"
    return _current


def run(
    verb: str, overrides: Sequence[str], configs: ConfigDirs, job: Callable[[Composed], Result], jobs: Jobs
) -> Multirun:
    """Launch the jobs; `job` must not raise, and runs wherever the launcher says."""
    global _current
    with hydra_session(configs, verb, overrides) as composer:
        config = composer.load_configuration(verb, [*overrides, "hydra.mode=MULTIRUN"], RunMode.MULTIRUN)
        with hydra_config_set(config):
            validate_hydra(config)
        callbacks = hydra_private.callbacks_of(config)
        _current = Multirun(config, HydraContext(composer, callbacks), composer, jobs)
        callbacks.on_multirun_start(config=config, config_name=verb)
        _current.sweep(HydraTask(job))
        callbacks.on_multirun_end(config=config, config_name=verb)
        return _current
