"""Hydra's own multirun of `icl VERB -m`, with any sweeper and any launcher.

A sweeper decides on jobs and hands them, all at once or batch by batch, to the launcher that the config
names. Put before that launcher, we see every job before it runs and what it gave back, whoever the two are:
a job that cannot be used is refused before the first starts, and one that fails neither ends the others nor
gets lost on the way.
"""

from __future__ import annotations

import copy
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from hydra._internal.callbacks import Callbacks
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn, JobStatus
from hydra.types import HydraContext, RunMode, TaskFunction
from omegaconf import DictConfig, OmegaConf, open_dict, read_write

from icl.config import packages
from icl.config.compose import ERRORS, Composed, explain, hydra_of, in_force, plain, plain_in_job
from icl.config.objects import refuse_foreign
from icl.config.places import Configs
from icl.errors import InputError

Overrides = list[str]
Result = Mapping[str, Any]  # what a job left: status, exit_code, document
_BEFORE = {"_target_": "hydra_plugins.icl.launcher.Before"}


class Jobs(Protocol):
    """Whoever has jobs run."""

    def grid(self, composed: Iterable[Composed]) -> None:
        """All jobs there will be. Raises InputError if any is unusable; nothing has been written then."""

    def search(self, composed: Composed, sweeper: Any, swept: Sequence[str]) -> None:
        """The config without what a sweeper is to find, and what it is to find it from."""

    def admit(self, composed: Composed) -> None:
        """A job of a search. Raises InputError if it is unusable."""

    @property
    def folder(self) -> Path:
        """Where a sweeper or launcher may keep its own files, once there are jobs."""

    def failed(self, error: Exception) -> Result:
        """What a job left that did not get as far as its task."""

    def answer(self, result: Result) -> Any:
        """What an optimising sweeper is told: a number, or the exception that stands for none."""


@dataclass(frozen=True)
class Task:
    """The task function Hydra hands to a launcher, picklable. What it may build was fixed where it was made:
    hydra.job.env_set is in force when it is called."""

    job: Callable[[Composed], Any]
    allowed: tuple[str, ...] = field(default_factory=packages.allowed)

    def __call__(self, cfg: DictConfig) -> Any:
        with packages.fixed(self.allowed):
            return self.job(plain_in_job(cfg))


@dataclass
class Multirun:
    """`overrides` are the jobs that ran, `results` what each gave back."""

    config: DictConfig
    context: HydraContext
    jobs: Jobs
    is_grid: bool = False
    overrides: list[Overrides] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)

    def sweep(self, task: Task) -> None:
        # Hydra has made this class anew when it looked for plugins.
        from hydra._internal.core_plugins.basic_sweeper import BasicSweeper

        hydra = self.config.hydra
        _refuse(self.config)
        if hydra.runtime.choices["hydra/launcher"] == "submitit_slurm" and shutil.which("srun") is None:
            raise InputError("hydra/launcher=submitit_slurm: no srun here; submitit_local needs none")
        watched = copy.deepcopy(self.config)
        with read_write(watched.hydra), open_dict(watched.hydra):
            watched.hydra.launcher = _BEFORE
        sweeper = Plugins.instance().instantiate_sweeper(
            config=watched, hydra_context=self.context, task_function=task
        )
        swept = list(hydra.overrides.task)
        self.is_grid = isinstance(sweeper, BasicSweeper)
        if isinstance(sweeper, BasicSweeper):
            parser = OverridesParser.create(config_loader=self.context.config_loader)
            parsed = parser.parse_overrides([*sweeper._parse_config(), *swept])
            self.jobs.grid(self._composed(sweeper.split_arguments(parsed, None)[0]))
        else:
            self.jobs.search(plain(self.config), OmegaConf.to_container(hydra.sweeper), swept)
        _keep_files_in(self.jobs.folder, watched)
        try:
            sweeper.sweep(arguments=swept)
        except ERRORS:
            raise
        except Exception:
            if not any(result["status"] == "failed" for result in self.results):
                raise  # else the sweeper has given up over a job that failed, which is told at the end
        finally:
            # Hydra's basic sweeper has kept there what was typed, secrets and all.
            (self.jobs.folder / "multirun.yaml").unlink(missing_ok=True)

    def launch(
        self, jobs: list[Overrides], first: int, context: HydraContext, task: TaskFunction
    ) -> Sequence[JobReturn]:
        """What the launcher chosen makes of a batch of jobs, as the sweeper is to see it."""
        refused = {} if self.is_grid else self._refused(jobs)
        sent = [job for i, job in enumerate(jobs) if i not in refused]
        back = iter(self._launched(sent, first, context, task) if sent else [])
        returns = [refused[i] if i in refused else next(back) for i in range(len(jobs))]
        results = [self._result(job_return) for job_return in returns]
        self.overrides += jobs
        self.results += results
        for job_return, result in zip(returns, results, strict=True):
            answer = self.jobs.answer(result)
            fails = isinstance(answer, Exception) and not self.is_grid  # a grid goes on
            job_return.status = JobStatus.FAILED if fails else JobStatus.COMPLETED
            job_return.return_value = answer
        return returns

    def _launched(
        self, jobs: list[Overrides], first: int, context: HydraContext, task: TaskFunction
    ) -> Sequence[JobReturn]:
        self.jobs.folder.mkdir(parents=True, exist_ok=True)
        files = Path(tempfile.mkdtemp(prefix=".launcher-", dir=self.jobs.folder))
        _keep_files_in(files, self.config)
        returns = Plugins.instance().instantiate_launcher(context, task, self.config).launch(jobs, first)
        shutil.rmtree(files)  # submitit pickles what was typed; if a worker has died, its logs stay
        return returns

    def _composed(self, jobs: Iterable[Sequence[str]]) -> Iterator[Composed]:
        for job in jobs:
            config = self.context.config_loader.load_sweep_config(self.config, list(job))
            _refuse(config)
            yield plain(config)

    def _refused(self, jobs: Sequence[Overrides]) -> dict[int, JobReturn]:
        """Those of a search that are unusable; in its first batch, before which nothing ran, none may be."""
        refused = {}
        for i, job in enumerate(jobs):
            try:
                for composed in self._composed([job]):
                    self.jobs.admit(composed)
            except InputError as error:
                if not self.results:
                    raise
                refused[i] = JobReturn(overrides=job, status=JobStatus.FAILED, _return_value=error)
        return refused

    def _result(self, job_return: JobReturn) -> Result:
        value = job_return._return_value
        return value if job_return.status is JobStatus.COMPLETED else self.jobs.failed(value)


def _keep_files_in(folder: Path, config: DictConfig) -> None:
    with read_write(config.hydra.sweep):
        config.hydra.sweep.dir = str(folder)


def _refuse(config: DictConfig) -> None:
    with in_force(config):
        parts = ("callbacks", "sweeper", "launcher")
        refuse_foreign({part: OmegaConf.to_container(config.hydra[part], resolve=True) for part in parts})
    for part in ("job_logging", "hydra_logging"):
        if config.hydra[part] is None or config.hydra[part].get("root") is not None:
            raise InputError(f"hydra.{part}: leave it at none; each run keeps its own records")


_current: Multirun | None = None  # Hydra makes the launcher without a way to hand it anything


def current() -> Multirun:
    """For the launcher."""
    assert _current is not None, "works below `icl` alone"
    return _current


def run(
    verb: str, overrides: Sequence[str], configs: Configs, job: Callable[[Composed], Result], jobs: Jobs
) -> Multirun:
    """`job` must not raise; it runs wherever the launcher says."""
    global _current
    with hydra_of(configs, verb) as hydra:
        try:
            config = hydra.compose_config(verb, [*overrides, "hydra.mode=MULTIRUN"], RunMode.MULTIRUN)
            _refuse(config)
            callbacks = Callbacks(config)
            _current = Multirun(config, HydraContext(hydra.config_loader, callbacks), jobs)
            callbacks.on_multirun_start(config=config, config_name=verb)
            _current.sweep(Task(job))
            callbacks.on_multirun_end(config=config, config_name=verb)
        except ERRORS as error:
            raise InputError(explain(configs, verb, overrides, error)) from error
        return _current
