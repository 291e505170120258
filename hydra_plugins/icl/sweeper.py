"""hydra/sweeper=search: proposes points, runs them in batches, and reports the results to the method."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf


class Search(Sweeper):
    def __init__(self, params: Mapping[str, Any]) -> None:
        self.params = params

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        from icl.jobs.execution.search import settings

        if "search" not in config:
            from icl.errors import InputError

            raise InputError("hydra/sweeper=search: is for icl train")
        self.settings = settings(OmegaConf.to_container(config.search, resolve=True))
        self.config, self.loader = config, hydra_context.config_loader
        self.launcher = Plugins.instance().instantiate_launcher(hydra_context, task_function, config)

    def sweep(self, arguments: list[str]) -> None:
        from icl.jobs.execution.search import dimension, method

        parser = OverridesParser.create(config_loader=self.loader)
        parsed = parser.parse_overrides([*(f"{k}={v}" for k, v in self.params.items()), *arguments])
        fixed = [override.input_line or "" for override in parsed if not override.is_sweep_override()]
        space = [dimension(override) for override in parsed if override.is_sweep_override()]
        searcher = method(self.settings, space, Path(self.config.hydra.sweep.dir))
        first, trials = 0, self.settings.trials
        while points := searcher.ask(first, min(self.settings.batch, trials - first)):
            returns = self.launcher.launch([(*fixed, *point) for point in points], initial_job_idx=first)
            searcher.tell(first, [_number(one) for one in returns])
            first += len(points)


def _number(job_return: JobReturn) -> float | None:
    try:
        return float(job_return.return_value)
    except Exception:  # what the job failed of; it is reported at the end
        return None
