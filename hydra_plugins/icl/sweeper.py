"""The sweeper of `icl VERB -m`: Hydra's grid, all validated before the first job, and no file of its own."""

import copy
import time
from dataclasses import dataclass
from typing import Any

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig, open_dict, read_write


@dataclass
class IclSweeperConfig:
    _target_: str = "hydra_plugins.icl.sweeper.IclSweeper"
    max_batch_size: int | None = None
    params: Any = None


ConfigStore.instance().store(group="hydra/sweeper", name="icl", node=IclSweeperConfig, provider="icl")


class IclSweeper(BasicSweeper):
    def sweep(self, arguments: list[str]) -> None:
        from icl.cli.multirun import conclude, validated
        from icl.cli.outcome import stdout_kept_for_results

        assert self.config is not None and self.launcher is not None and self.hydra_context is not None
        started = time.monotonic()
        loader = self.hydra_context.config_loader
        parsed = OverridesParser.create(config_loader=loader).parse_overrides(arguments)
        jobs = [list(job) for job in self.split_arguments(parsed, None)[0]]
        with stdout_kept_for_results():
            sweep = validated(jobs, (_as_in_job(loader.load_sweep_config(self.config, job)) for job in jobs))
            returned = self.launcher.launch(jobs, initial_job_idx=0)
        conclude(sweep, [job_return.return_value for job_return in returned], started)


def _as_in_job(composed: DictConfig) -> DictConfig:
    """What a launcher gives the job: the config without Hydra's own part, which becomes HydraConfig."""
    HydraConfig.instance().set_config(composed)
    cfg = copy.deepcopy(composed)
    with read_write(cfg), open_dict(cfg):
        del cfg["hydra"]
    return cfg
