"""Validation of hydra.*: no foreign targets, no environment variables but thread counts, no output folders.
It runs before Hydra acts on any of it."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from typing import Any

from hydra.conf import HydraConf
from hydra.core.utils import JobRuntime
from hydra.plugins.launcher import Launcher
from hydra.plugins.sweeper import Sweeper
from omegaconf import DictConfig, OmegaConf

from icl.config.objects import allowed_target, target_class
from icl.errors import InputError, nearest

# Other variables may make a program that is started later, such as git, run foreign code.
_ENVIRONMENT = re.compile(r"\w+_NUM_THREADS|CUDA_VISIBLE_DEVICES|CUBLAS_WORKSPACE_CONFIG")
_PLUGINS = ("hydra_plugins.", "hydra._internal.core_plugins.")
_PARENTS = {"hydra.sweeper": Sweeper, "hydra.launcher": Launcher}
_GROUPS = ("env",)  # of Hydra's configs, which HydraConf does not list
BEFORE = "hydra_plugins.icl.launcher.Before"  # stands before the launcher that is chosen
_SAMPLER = re.compile(r"optuna\.samplers\.[A-Z]\w*")
_FOLDERS = {
    "hydra.output_subdir": None,
    "hydra.job.chdir": False,
    "hydra.run.dir": ".",
    "hydra.sweep.dir": ".",
    "hydra.sweep.subdir": ".",
}


def validate_hydra(config: DictConfig) -> None:
    """Validate the Hydra part of an installed config (icl.config.compose.hydra_config_set)."""
    for part in ("job_logging", "hydra_logging"):
        node = config.hydra[part]
        if not OmegaConf.is_dict(node) or node.get("root") is not None:
            raise InputError(f"hydra.{part}: leave it at none; each run keeps its own records")
    for key, kept in _FOLDERS.items():
        if OmegaConf.select(config, key) not in (kept, None):
            raise InputError(f"{key}: leave it at {kept}; the run store makes the folders, in paths.outputs")
    if config.hydra.job.name != JobRuntime.instance().get("name"):
        raise InputError("hydra.job.name: leave it out; name=mylab/first names a run")
    if config.hydra.verbose:
        raise InputError("hydra.verbose: leave it at false; verbose=true shows the tracebacks of what fails")
    for name in config.hydra.job.env_set or {}:
        if not _ENVIRONMENT.fullmatch(str(name)):
            raise InputError(f"hydra.job.env_set.{name}: no config sets that; set it where you start icl")
    _insist_on_known_keys("hydra", config.hydra, OmegaConf.structured(HydraConf))
    parts = {part: _settings(config, part) for part in ("callbacks", "sweeper", "launcher")}
    for part, node in parts.items():
        for key, name in _targets(f"hydra.{part}", node):
            _insist(key, name)
    space, folder = parts["sweeper"].get("custom_search_space"), parts["launcher"].get("submitit_folder")
    if space is not None:
        allowed_target("hydra.sweeper.custom_search_space", space)
    if folder is not None and folder != f"{config.hydra.sweep.dir}/.submitit/%j":
        raise InputError("hydra.launcher.submitit_folder: leave it; what submitit writes is below outputs")


def _insist_on_known_keys(key: str, node: Any, known: Any) -> None:
    """Refuse keys that Hydra does not have, where its own config says which there are."""
    names = list(known)  # `in` leaves out those without a value
    for name in node:
        if name in _GROUPS:
            continue
        if name not in names:
            raise InputError(f"{key}.{name}: Hydra has no such key{nearest(str(name), names)}")
        below, own = node._get_node(name), known._get_node(name)
        both = OmegaConf.is_dict(below) and OmegaConf.is_dict(own)
        if both and is_dataclass(OmegaConf.get_type(own)):
            _insist_on_known_keys(f"{key}.{name}", below, own)


def _insist(key: str, name: Any) -> None:
    if key in _PARENTS:
        if not str(name).startswith(_PLUGINS):
            raise InputError(f"{key}._target_={name}: must be in hydra_plugins")
        module, _, attribute = str(name).rpartition(".")
        try:
            found = getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError, ValueError) as error:
            raise InputError(f"{key}._target_={name}: cannot be imported ({error})") from None
        is_class = isinstance(found, type) and issubclass(found, _PARENTS[key])
        if not is_class or inspect.isabstract(found) or name == BEFORE:
            what = _PARENTS[key].__name__.lower()
            raise InputError(f"{key}._target_={name}: is no {what} (hydra/{what}=... names one)")
    elif not _SAMPLER.fullmatch(str(name)):
        target_class(key, name)


def _settings(config: DictConfig, part: str) -> dict[str, Any]:
    node = OmegaConf.select(config, f"hydra.{part}")
    if not OmegaConf.is_dict(node):
        raise InputError(f"hydra.{part}={node}: must be a group of settings")
    found: Any = OmegaConf.to_container(node, resolve=True)
    return found


def _targets(key: str, node: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(node, Mapping):
        if "_target_" in node:
            yield key, node["_target_"]
        for name, value in node.items():
            yield from _targets(f"{key}.{name}", value)
    elif isinstance(node, list):
        for i, value in enumerate(node):
            yield from _targets(f"{key}.{i}", value)
