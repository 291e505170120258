"""The sweeper of `icl VERB -m`: Hydra's grid, with every job validated before the first starts and no file of its own."""

import time
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
    def sweep(self, arguments: list[str]) -> Any:
        from icl.cli.multirun import conclude, current
        from icl.cli.outcome import stdout_kept_for_results

        assert self.config is not None and self.launcher is not None and self.hydra_context is not None
        started = time.monotonic()
        parsed = OverridesParser.create(config_loader=self.hydra_context.config_loader).parse_overrides(arguments)
        batches = self.split_arguments(parsed, None)
        jobs = [list(job) for batch in batches for job in batch]
        master = self.config
        for job in jobs:
            current.validate(self.hydra_context.config_loader.load_sweep_config(master, job))
        with stdout_kept_for_results():
            returned = self.launcher.launch(jobs, initial_job_idx=0)
        swept = [[o for o in job if _varies(o, jobs)] for job in jobs]
        conclude(swept, [job_return.return_value for job_return in returned], master, started)
        return None


def _varies(override: str, jobs: list[list[str]]) -> bool:
    return len(jobs) == 1 or not all(override in job for job in jobs)
