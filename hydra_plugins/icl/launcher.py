"""`Before` stands before the launcher that was chosen, under every sweeper; `Vectorized` is one of these."""

from collections.abc import Sequence
from typing import Any

from hydra.core.utils import JobReturn
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig


class Before(Launcher):
    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        self.hands_on_to: Any = (hydra_context, task_function)

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        from icl.jobs.execution.hydra_multirun import current

        return current().launch([list(job) for job in job_overrides], initial_job_idx, *self.hands_on_to)


class Vectorized(Launcher):
    """Train jobs that differ in numbers per replica only as one ensemble: icl.jobs.execution.vectorized."""

    def __init__(self, max_replicas: int | None = None) -> None:
        self.max_replicas = max_replicas

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """All that is needed was seen when the jobs were validated."""

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        from icl.jobs.execution.hydra_multirun import current

        return current().run_vectorized([list(job) for job in job_overrides], self.max_replicas)
