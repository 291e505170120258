"""The sweeper of `icl VERB -m`: Hydra's grid, all validated before the first job, and no file of its own."""

from dataclasses import dataclass
from typing import Any

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser


@dataclass
class IclSweeperConfig:
    _target_: str = "hydra_plugins.icl.sweeper.IclSweeper"
    max_batch_size: int | None = None
    params: Any = None


ConfigStore.instance().store(group="hydra/sweeper", name="icl", node=IclSweeperConfig, provider="icl")


class IclSweeper(BasicSweeper):
    def sweep(self, arguments: list[str]) -> None:
        from icl.config.compose import plain
        from icl.config.multirun import current

        assert self.config is not None and self.launcher is not None and self.hydra_context is not None
        loader, config, multirun = self.hydra_context.config_loader, self.config, current()
        parsed = OverridesParser.create(config_loader=loader).parse_overrides(arguments)
        multirun.jobs = [list(job) for job in self.split_arguments(parsed, None)[0]]
        multirun.check(multirun.jobs, (plain(loader.load_sweep_config(config, job)) for job in multirun.jobs))
        done = self.launcher.launch(multirun.jobs, initial_job_idx=0)
        multirun.returned = [job_return.return_value for job_return in done]
