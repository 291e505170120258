"""Stands before the launcher that was chosen, under every sweeper: see icl.config.multirun."""

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
        from icl.config.multirun import current

        return current().launch([list(job) for job in job_overrides], initial_job_idx, *self.hands_on_to)
