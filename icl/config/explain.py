"""Errors of Hydra and OmegaConf in one line each, with the nearest choice where there is one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf.errors import OmegaConfBaseException

from icl.config.nested_keys import composed_key, user_key
from icl.config.search_path import ConfigDirs
from icl.errors import InputError, nearest, nearest_key, suggest

ERRORS = (HydraException, OmegaConfBaseException)
_BRING = dict.fromkeys(("submitit_local", "submitit_slurm"), "'icl-theory[slurm]'") | {
    "ax": "hydra-ax-sweeper",
    "nevergrad": "hydra-nevergrad-sweeper",
    "ray": "hydra-ray-launcher",
    "rq": "hydra-rq-launcher",
}


OPTION_GROUPS = ("task", "model", "optimizer", "schedule")  # whose options differ in settings

Keys = Callable[[ConfigDirs, str, Sequence[str]], list[str]]


def explain(configs: ConfigDirs, verb: str, overrides: Sequence[str], error: Exception, keys: Keys) -> str:
    """Return an error of Hydra or OmegaConf in one line, with the nearest choice if there is one."""
    text, cause = str(error), error.__cause__ or error.__context__
    while cause is not None:  # of a value that a resolver refused
        if isinstance(cause, InputError):
            return str(cause)
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        group, option = _group_and_option(error.missing_cfg_file)
        missing = _not_installed(group, option)
        if missing is not None:
            return missing
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
        key = user_key((path[1] if path else unknown[1]).removeprefix("/"))
        known = [name for name in keys(configs, verb, overrides) if name != key]
        if key.startswith(("trainer.", "callbacks.")):  # groups that take what they do not list
            return f"{key}: not in the config (+{key}=... adds it){nearest_key(key, known)}"
        return _of_another_option(configs, overrides, key, known) or (
            f"{key}: no such key or group ({_help(verb, overrides)} lists them){nearest_key(key, known)}"
        )
    many = re.search(r"(?:argument|parameters) '([^']+)'", text)
    if many and ("Ambiguous value" in text or "requires --multirun" in text):
        return f"{user_key(many[1])}: several values need -m, one list needs [ ]"
    cause = error.__cause__ or error
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    return " ".join(lines[: 2 if lines[0].endswith(":") else 1]) if lines else type(cause).__name__


def _of_another_option(
    configs: ConfigDirs, overrides: Sequence[str], key: str, known: Sequence[str]
) -> str | None:
    """Return the message for a key that other options of its group have, such as betas with optimizer=sgd."""
    group, _, name = composed_key(key).partition(".")
    if group not in OPTION_GROUPS or not name:
        return None
    texts = {option: configs.text(group, option) for option in configs.options(group)}
    line = re.compile(rf"^{re.escape(name)}:", re.MULTILINE)
    others = [f"{group}={option}" for option, text in texts.items() if line.search(text)]
    if not others:
        return None
    chosen = next((o for o in overrides if o.lstrip("+").startswith(f"{group}=")), f"the chosen {group}")
    prefix = f"{user_key(group)}."
    own = [k.removeprefix(prefix) for k in known if k.startswith(prefix) and not k.endswith("_target_")]
    listed = ", ".join(k for k in own if "." not in k and k != "schedule") or "it has none"
    return f"{key}: not a setting of {chosen} ({listed}){suggest(others[:3])}"


def _help(verb: str, overrides: Sequence[str]) -> str:
    choices = ("check=", "figure=", "experiment=")
    chosen = [override for override in overrides if override.startswith(choices)]
    return " ".join(["icl", verb, *chosen[:1], "--help"])


def _group_and_option(path: str) -> tuple[str, str]:
    """Split an override into group and option: options of icl are nested (experiment=ahn/theorem3), groups of
    Hydra are (hydra/launcher=joblib)."""
    group, _, option = path.rpartition("/") if path.startswith("hydra/") else path.partition("/")
    return group, option


def _not_installed(group: str, option: str) -> str | None:
    """Return the package that a launcher or sweeper of Hydra's needs, if it is missing."""
    kind = group.removeprefix("hydra/")
    if kind not in ("launcher", "sweeper"):
        return None
    if option == "optuna":
        ours = "hydra/sweeper=search search.method=bayes does its work (pip install 'icl-theory[optuna]')"
        return f"{group}=optuna: hydra-optuna-sweeper needs an optuna that is too old here; {ours}"
    if option in _BRING:
        return f"{group}={option}: is not installed; pip install {_BRING[option]}"
    names = ConfigStore.instance().list(group)
    here = sorted({name.removesuffix(".yaml") for name in names if not name.startswith("_")})
    return f"{group}={option}: no such {kind} is installed (one of: {', '.join(here)}){nearest(option, here)}"


def leaves(node: Any, prefix: str = "") -> Iterator[str]:
    """Dotted names of everything in nested settings."""
    if isinstance(node, Mapping):
        for name, value in node.items():
            yield f"{prefix}{name}"
            yield from leaves(value, f"{prefix}{name}.")
