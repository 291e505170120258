"""One composition, which takes Hydra .2 s, for configs that differ in values alone, until a file changes."""

import copy
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra.core.config_loader import ConfigLoader
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, OverrideType
from hydra.core.utils import JobRuntime
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf, read_write
from omegaconf.errors import OmegaConfBaseException

_KEPT = 300  # .2 MB each
_composed: dict[Any, DictConfig] = {}  # the process's


def share_compositions(loader: ConfigLoader) -> None:
    """Let `loader` compose once for all overrides that differ in values alone: jobs of a multirun, each of
    which validation, sweeper and launcher ask for, runs of a figure, and calls in a notebook."""
    if not isinstance(loader.load_configuration, _Shared):
        loader.load_configuration = _Shared(loader)  # type: ignore[method-assign,assignment]


class _Shared:
    """The `load_configuration` of a loader, in a form that launchers can pickle. The first with its options
    of groups is composed without its values; these are set on its copies."""

    def __init__(self, loader: ConfigLoader) -> None:
        self.load, self.groups = loader.load_configuration, frozenset(loader.list_groups(""))
        self.files = _files([place.path or "" for place in loader.get_search_path().get_path()])

    def __call__(
        self, config_name: str | None, overrides: list[str], run_mode: RunMode, **more: bool
    ) -> DictConfig:
        read = OverridesParser.create().parse_overrides(overrides)
        changed = {_top(one) for one in read if one.type != OverrideType.CHANGE}  # there the order counts
        values = [one for one in read if self._is_value(one) and _top(one) not in changed]
        options = [str(one.input_line) for one in read if one not in values]
        typed: list[Any] = [one.value() for one in read if one.key_or_group == "hydra.searchpath"]
        searched = _files([str(place) for places in typed if isinstance(places, list) for place in places])
        sweeps = any(one.is_sweep_override() for one in read)
        asked = (run_mode, *more.items()) if sweeps else ()  # without a sweep the errors alone differ by them
        same = (config_name, JobRuntime().get("name"), *asked, self.files, searched, *options)
        try:
            if same not in _composed:
                if len(_composed) == _KEPT:
                    _composed.clear()
                mode = run_mode if sweeps else RunMode.RUN
                _composed[same] = self.load(config_name, options, mode, **more)
            cfg = copy.deepcopy(_composed[same])
            for one in values:
                OmegaConf.update(cfg, one.key_or_group, one.value(), merge=True)
        except (OmegaConfBaseException, HydraException):
            return self.load(config_name, overrides, run_mode, **more)  # Hydra says what is wrong
        task = [one for one in read if not one.is_hydra_override()]
        with read_write(cfg.hydra):
            cfg.hydra.runtime.cwd = os.getcwd()
            cfg.hydra.overrides.hydra = [one.input_line for one in read if one.is_hydra_override()]
            cfg.hydra.overrides.task = [one.input_line for one in task]
            about = cfg.hydra.job.config.override_dirname
            shown = (str(one.input_line) for one in task if one.key_or_group not in about.exclude_keys)
            cfg.hydra.job.override_dirname = about.item_sep.join(sorted(shown)).replace("=", about.kv_sep)
        return cfg

    def _is_value(self, one: Override) -> bool:
        key, plain = one.key_or_group, one.type == OverrideType.CHANGE and one.package is None
        option = key in self.groups or "/" in key or (one.is_hydra_override() and key != "hydra.mode")
        return plain and not option and not one.is_sweep_override()


def _top(one: Override) -> str:
    return one.key_or_group.partition(".")[0]


def _files(places: Sequence[str]) -> tuple[tuple[str, int, int], ...]:
    """Return the configs in places of a search path, each with time and size."""
    folders = [Path(place.removeprefix("file://")) for place in places]
    paths = [path for folder in folders if folder.is_absolute() for path in folder.rglob("*.yaml")]
    return tuple((str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in paths)
