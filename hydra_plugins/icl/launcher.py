"""hydra/launcher=vectorized: jobs that differ in numbers of single replicas train as one ensemble."""

from collections.abc import Sequence

from hydra.core.utils import JobReturn, JobStatus
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig


class Vectorized(Launcher):
    def __init__(self, max_replicas: int | None = None) -> None:
        self.max_replicas = max_replicas

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """All that is needed was seen when the jobs were validated."""

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        from hydra_plugins.icl._multirun import current

        values = current().run_vectorized(initial_job_idx, len(job_overrides), self.max_replicas)
        return [
            JobReturn(overrides=list(job), status=JobStatus.COMPLETED, _return_value=value)
            for job, value in zip(job_overrides, values, strict=True)
        ]
