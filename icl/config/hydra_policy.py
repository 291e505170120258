"""Validation of hydra.*: no foreign targets, no environment variables but thread counts, no output folders.
It runs before Hydra acts on any of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from hydra.core.utils import JobRuntime
from omegaconf import DictConfig, OmegaConf

from icl.config.objects import allowed_target, target_class
from icl.errors import InputError

# Other variables may make a program that is started later, such as git, run foreign code.
_ENVIRONMENT = re.compile(r"\w+_NUM_THREADS|CUDA_VISIBLE_DEVICES|CUBLAS_WORKSPACE_CONFIG")
_PLUGINS = ("hydra_plugins.", "hydra._internal.core_plugins.")
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
    parts = {part: _settings(config, part) for part in ("callbacks", "sweeper", "launcher")}
    for part, node in parts.items():
        for key, name in _targets(f"hydra.{part}", node):
            _insist(key, name)
    space, folder = parts["sweeper"].get("custom_search_space"), parts["launcher"].get("submitit_folder")
    if space is not None:
        allowed_target("hydra.sweeper.custom_search_space", space)
    if folder is not None and folder != f"{config.hydra.sweep.dir}/.submitit/%j":
        raise InputError("hydra.launcher.submitit_folder: leave it; what submitit writes is below outputs")


def _insist(key: str, name: Any) -> None:
    if key in ("hydra.sweeper", "hydra.launcher"):
        if not str(name).startswith(_PLUGINS):
            raise InputError(f"{key}._target_={name}: must be in hydra_plugins")
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
