"""Hydra's compose, with its errors in one line each. What comes out is plain: no config goes further.

Nothing global is left changed, so that a notebook's or another program's own Hydra is not disturbed.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from icl.config.places import SCALES, Configs, conf_dir
from icl.errors import InputError, nearest, one_of

ERRORS = (HydraException, OmegaConfBaseException)
_lock = threading.RLock()  # Hydra's state is the process's


@dataclass(frozen=True)
class Composed:
    """A resolved config: `settings`, which option `choices` names of each group, and if -m was meant."""

    settings: dict[str, Any]
    choices: Mapping[str, str | None]
    multirun: bool = False


def compose(configs: Configs, verb: str, overrides: Sequence[str]) -> Composed:
    """conf/VERB.yaml with `overrides`."""
    try:
        return _compose(configs, verb, overrides)
    except ERRORS as error:
        raise InputError(explain(configs, verb, overrides, error)) from None


def plain(cfg: DictConfig) -> Composed:
    """A config with Hydra's own part still in it."""
    held = HydraConfig.instance().cfg
    HydraConfig.instance().set_config(cfg)  # for ${hydra:...}
    try:
        own = OmegaConf.masked_copy(cfg, [str(key) for key in cfg if key != "hydra"])
        settings: Any = OmegaConf.to_container(own, resolve=True)
        choices: Any = OmegaConf.to_container(cfg.hydra.runtime.choices)
        mode = cfg.hydra.mode
        return Composed(settings, choices, mode is not None and mode.name == "MULTIRUN")
    finally:
        HydraConfig.instance().cfg = held


def plain_in_job(cfg: DictConfig) -> Composed:
    """What a launcher hands to a job: Hydra's part has become HydraConfig."""
    register_resolvers()  # a worker process starts without them
    settings: Any = OmegaConf.to_container(cfg, resolve=True)
    return Composed(settings, dict(HydraConfig.get().runtime.choices))


def _compose(configs: Configs, verb: str, overrides: Sequence[str]) -> Composed:
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir

    register_resolvers()
    search = [] if configs.user is None else [f"hydra.searchpath=['file://{configs.user}']"]
    with _lock:
        held = GlobalHydra.instance().hydra
        GlobalHydra.instance().clear()
        try:
            with initialize_config_dir(str(conf_dir()), version_base="1.3", job_name=f"icl {verb}"):
                return plain(hydra_compose(verb, [*overrides, *search], return_hydra_config=True))
        finally:
            GlobalHydra.instance().clear()
            if held is not None:
                GlobalHydra.instance().initialize(held)


def register_resolvers() -> None:
    """`${at:smoke,laptop,paper}`: the value for the scale in force."""
    OmegaConf.register_new_resolver("at", _at, replace=True)


def _at(*values: Any, _root_: DictConfig) -> Any:
    scale = one_of("scale", _root_.get("scale", "laptop"), SCALES)
    if len(values) != len(SCALES):
        raise InputError(
            f"${{at:...}} has {len(values)} values, must have one for each of {', '.join(SCALES)}"
        )
    return values[SCALES.index(scale)]


def explain(configs: Configs, verb: str, overrides: Sequence[str], error: Exception) -> str:
    """One line for an error of Hydra or OmegaConf, with the nearest choice where there is one."""
    text = str(error)
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        group, option = _group_and_option(error.missing_cfg_file)
        try:
            configs.one_option(group, option)
        except InputError as complaint:
            return str(complaint)
    if isinstance(error, OverrideParseException):
        return f"{error.override}: cannot be read as an override; quote lists and strings for the shell"
    unknown = re.search(r"Could not override '([^']+)'", text) or re.search(
        r"Key '([^']+)' is not in struct", text
    )
    unknown = unknown or re.search(r"Could not (?:override|append|delete)[^']*'?([\w/@.]+)'?", text)
    if unknown:
        path = re.search(r"full_key: (\S+)", text)
        key = (path[1] if path else unknown[1]).removeprefix("/")
        known = [name for name in _keys(configs, verb, overrides) if name != key]
        return f"{key}: no such key or group{nearest(key, known)} (icl {verb} --help shows them)"
    many = re.search(r"(?:argument|parameters) '([^']+)'", text)
    if many and ("Ambiguous value" in text or "requires --multirun" in text):
        return f"{many[1]}: several values need -m, one list needs [ ]"
    cause = error.__cause__ or error
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    return lines[0] if lines else type(cause).__name__


def _group_and_option(path: str) -> tuple[str, str]:
    """Our options are nested, experiment=ahn/theorem3; with Hydra's the groups are, hydra/launcher=joblib."""
    group, _, option = path.rpartition("/") if path.startswith("hydra/") else path.partition("/")
    return group, option


def _keys(configs: Configs, verb: str, overrides: Sequence[str]) -> list[str]:
    """The keys of the config with the groups as chosen: what a misspelt key could have meant."""
    groups = configs.groups
    for kept in ([o for o in overrides if o.partition("=")[0].lstrip("+") in groups], []):
        with contextlib.suppress(*ERRORS):
            return [*leaves(_compose(configs, verb, kept).settings), *groups]
    return sorted(groups)


def leaves(node: Any, prefix: str = "") -> Iterator[str]:
    """Dotted names of everything in nested settings."""
    if isinstance(node, Mapping):
        for name, value in node.items():
            yield f"{prefix}{name}"
            yield from leaves(value, f"{prefix}{name}.")
