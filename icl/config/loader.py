"""Hydra's loader, with two habits of icl's.

What an experiment sets for one option of a group belongs to that option: where another is chosen it is left
out. And some keys are typed, and may stand in files, within a group whose class does not take them: they are
composed beside it, so that `hydra.utils.instantiate(cfg.optimizer, params=...)` works on what is composed.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.defaults_list import create_defaults_list
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, OverrideType
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf, open_dict

from icl.config.beside import BESIDE, as_composed
from icl.errors import InputError

_WITHOUT_CLIP = "torch.optim.LBFGS"
FITTED = ("checks", "train.estimator", "train.batch", "train.coordinates")  # to a task and a model
MAY_NOT_FIT = "experiment/may_not_fit"  # and which of these are for others than those chosen
LEFT_OUT = "experiment/left_out"  # where a config keeps what was, among its choices
_GROUPS = ("task", "model", "optimizer", "schedule", "callbacks")  # their options differ in settings


def parsed(loader: ConfigLoaderImpl, overrides: Sequence[str]) -> list[Override]:
    """Parse overrides as Hydra does, with the keys of a composed config."""
    found = OverridesParser.create(config_loader=loader).parse_overrides(list(overrides))
    return [_beside(override) for override in found]


def _beside(override: Override) -> Override:
    typed = override.key_or_group
    override.key_or_group = as_composed(typed)
    if typed == "optimizer.schedule" and override.type is OverrideType.CHANGE:
        value = override.value()
        if not isinstance(value, dict | str | None) and not override.is_sweep_override():
            raise InputError(f"{typed}={value}: must be a group of settings (schedule=... names one)")
    return override


class Loader(ConfigLoaderImpl):
    """Hydra's loader with the two habits above, made from `loader`."""

    def __init__(self, loader: ConfigLoaderImpl) -> None:
        vars(self).update(vars(loader))
        self._overrides: list[Override] = []
        self._chosen_otherwise: set[str] = set()
        self._left_out: list[str] = []

    def _parse_overrides_and_create_caching_repo(self, config_name: str | None, overrides: list[str]) -> Any:
        _, repo = super()._parse_overrides_and_create_caching_repo(config_name, overrides)
        self._overrides = parsed(self, overrides)
        return self._overrides, repo

    def _load_configuration_impl(
        self, config_name: str | None, overrides: list[str], run_mode: RunMode, *rest: Any, **more: Any
    ) -> DictConfig:
        self._chosen_otherwise, self._left_out = self._otherwise(config_name, overrides), []
        config = super()._load_configuration_impl(config_name, overrides, run_mode, *rest, **more)
        with open_dict(config.hydra.runtime.choices):
            typed = {override.key_or_group for override in self._overrides if not override.is_delete()}
            if left_out := [key for key in self._left_out if key not in typed]:
                config.hydra.runtime.choices[LEFT_OUT] = left_out
            if self._chosen_otherwise & {"task", "model"}:
                config.hydra.runtime.choices[MAY_NOT_FIT] = [key for key in FITTED if key not in typed]
        return config

    def _otherwise(self, config_name: str | None, overrides: list[str]) -> set[str]:
        """Groups of which another option is chosen than the experiment's own."""
        every, repo = self._parse_overrides_and_create_caching_repo(config_name, overrides)
        asked = {one.key_or_group for one in every}.intersection(_GROUPS)
        if not asked:
            return set()

        def choices(overrides: list[Override]) -> Any:
            found = create_defaults_list(repo, config_name, overrides, prepend_hydra=True, skip_missing=True)
            return found.overrides.known_choices

        chosen = choices(every)
        if chosen.get("experiment") is None:
            return set()
        own = choices([one for one in every if one.key_or_group not in asked])
        return {group for group in asked if chosen.get(group) != own.get(group)}

    def _load_single_config(self, default: Any, repo: Any) -> Any:
        loaded = super()._load_single_config(default, repo)
        if not OmegaConf.is_dict(loaded.config):
            return loaded
        loaded = copy.copy(loaded)
        config: Any = copy.deepcopy(loaded.config)
        loaded.config = config
        for typed, key in BESIDE.items():
            group, _, name = typed.partition(".")
            node = config._get_node(group)
            if OmegaConf.is_dict(node) and name in node:
                OmegaConf.update(config, key, node._get_node(name), merge=True, force_add=True)
                del node[name]
        if default.config_path.startswith("experiment/"):
            for group in sorted(self._chosen_otherwise & set(config)):
                names = _leaves(group, config._get_node(group))
                self._left_out += [name for name in names if name not in self._left_out]
                del config[group]
        model = config._get_node("model")
        is_model = default.config_path.startswith("model/") and OmegaConf.is_dict(model)
        if is_model and OmegaConf.is_interpolation(model, "dim"):
            del model["dim"]  # it is there for whoever instantiates without icl
        return loaded

    def _compose_config_from_defaults_list(self, defaults: Any, repo: Any) -> DictConfig:
        config: Any = super()._compose_config_from_defaults_list(defaults, repo)
        chosen = {override.key_or_group for override in self._overrides}
        alone = "optimizer" in chosen and OmegaConf.select(config, "optimizer._target_") == _WITHOUT_CLIP
        if alone and OmegaConf.select(config, "train.clip") is not None:
            config.train.clip = None
            self._left_out.append("train.clip")
        for override in self._overrides:  # ~optimizer.betas of what is left out already
            key = override.key_or_group
            if override.is_delete() and key in self._left_out and OmegaConf.select(config, key) is None:
                OmegaConf.update(config, key, override.value() or "", force_add=True)
        return config


def _leaves(key: str, node: Any) -> list[str]:
    if not OmegaConf.is_dict(node) or node._is_interpolation() or node._is_none():
        return [key]
    return [leaf for name in node for leaf in _leaves(f"{key}.{name}", node._get_node(name))]
