"""Hydra's composition takes .2 s: configs that differ in values alone share one."""

import copy
from collections.abc import Callable
from typing import Any

from hydra.core.config_loader import ConfigLoader
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import OverrideType
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf, read_write

Load = Callable[[list[str]], DictConfig]


def share_compositions(loader: ConfigLoader, known: dict[Any, Any]) -> None:
    """Let `loader` compose once for all overrides that differ in values alone; `known` keeps what it has
    composed. Under -m validation, sweeper and launcher each ask it for every job."""
    load, load_job = loader.load_configuration, loader.load_sweep_config

    def load_configuration(config_name: str | None, overrides: list[str], run_mode: RunMode) -> DictConfig:
        def composed(given: list[str]) -> DictConfig:
            return load(config_name, given, run_mode)

        return _shared(loader, known, composed, overrides, (config_name, run_mode))

    def load_sweep_config(master_config: DictConfig, sweep_overrides: list[str]) -> DictConfig:
        def composed(given: list[str]) -> DictConfig:
            return load_job(master_config, given)

        return _shared(loader, known, composed, sweep_overrides, ())

    loader.load_configuration = load_configuration  # type: ignore[method-assign,assignment]
    loader.load_sweep_config = load_sweep_config  # type: ignore[method-assign]


def _shared(
    loader: ConfigLoader, known: dict[Any, Any], load: Load, overrides: list[str], of: tuple[Any, ...]
) -> DictConfig:
    """Return a config of these overrides. The first with its options of groups is loaded; the others are its
    copies, on which their values are set."""
    groups = frozenset(loader.list_groups(""))
    read = OverridesParser.create(loader).parse_overrides(overrides)
    task = [one for one in read if not one.is_hydra_override()]
    values = [
        one
        for one in task
        if one.type == OverrideType.CHANGE
        and one.package is None
        and one.key_or_group not in groups
        and "/" not in str(one.key_or_group)
        and not one.is_sweep_override()
    ]
    same = *of, *(str(one.key_or_group if one in values else one.input_line) for one in read)
    if same not in known:
        known[same] = load(overrides)
    cfg = copy.deepcopy(known[same])
    for one in values:
        OmegaConf.update(cfg, str(one.key_or_group), one.value(), merge=True)
    with read_write(cfg.hydra):
        cfg.hydra.overrides.task = [one.input_line for one in task]
        about = cfg.hydra.job.config.override_dirname
        shown = (str(one.input_line) for one in task if one.key_or_group not in about.exclude_keys)
        cfg.hydra.job.override_dirname = about.item_sep.join(sorted(shown)).replace("=", about.kv_sep)
    return cfg
