"""Hydra, with its errors turned into one line each."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NoReturn

import hydra
from hydra._internal.utils import get_args_parser
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from icl.cli.outcome import Outcome, worst
from icl.config import conf_dir, leaves, register_resolvers
from icl.errors import InputError, nearest


def run_hydra(
    verb: str,
    args: Sequence[str],
    job: Callable[[DictConfig], Outcome],
    validate: Callable[[DictConfig], object],
) -> int:
    """Composes conf/VERB.yaml with `args` and runs `job`, once or, with -m, for every combination."""
    from icl.cli.app import guarded
    from icl.cli.multirun import MultirunTask, current

    flags = parse_flags(verb, args)
    register_resolvers()
    os.environ["HYDRA_FULL_ERROR"] = "1"  # so that errors come to us
    codes: list[int] = []
    current.validate = validate

    def once(cfg: DictConfig) -> None:
        codes.append(guarded(job, cfg))

    task = MultirunTask(job) if flags.multirun else once
    before = sys.argv
    sys.argv = [f"icl {verb}", *args]
    try:
        hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name=verb)(task)()
    except InputError:
        raise
    except (HydraException, OmegaConfBaseException) as error:
        raise InputError(explain(verb, args, error)) from None
    finally:
        sys.argv = before
    return current.code if flags.multirun else worst(codes)


def is_multirun() -> bool:
    return HydraConfig.initialized() and HydraConfig.get().mode == RunMode.MULTIRUN


def parse_flags(verb: str, args: Sequence[str]) -> argparse.Namespace:
    """Hydra's flags; a bad one is one line."""
    parser = get_args_parser()

    def complain(message: str) -> NoReturn:
        raise InputError(f"icl {verb}: {message} (icl {verb} --help shows what can be set)")

    parser.error = complain  # type: ignore[method-assign]
    flags = parser.parse_args(list(args))
    for override in flags.overrides:
        if "=" not in override and not override.startswith("~"):
            raise InputError(f"{override}: must have the form KEY=VALUE")
    return flags


def compose(verb: str, overrides: Sequence[str], config_dir: str | None = None) -> DictConfig:
    """A composed config without running anything, for the Python calls and for suggestions."""
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra

    register_resolvers()
    search = [f"hydra.searchpath=[file://{Path(config_dir).absolute()}]"] if config_dir else []
    held = GlobalHydra.instance().hydra
    GlobalHydra.instance().clear()
    try:
        with initialize_config_dir(str(conf_dir()), version_base="1.3", job_name=f"icl {verb}"):
            return hydra_compose(verb, [*overrides, *search])
    except (HydraException, OmegaConfBaseException) as error:
        raise InputError(explain(verb, overrides, error)) from None
    finally:
        GlobalHydra.instance().clear()
        if held is not None:
            GlobalHydra.instance().initialize(held)


def explain(verb: str, args: Sequence[str], error: Exception) -> str:
    """One line for an error of Hydra or OmegaConf, with the nearest choice where there is one."""
    text = str(error)
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        return _missing_option(error.missing_cfg_file, args)
    if isinstance(error, OverrideParseException):
        return f"{error.override}: cannot be read as an override; quote lists and strings for the shell"
    unknown = re.search(r"Could not override '([^']+)'", text) or re.search(r"Key '([^']+)' is not in struct", text)
    if unknown:
        key = unknown[1].removeprefix("/")
        return f"{key}: no such key{nearest(key, _keys(verb, args))}"
    group = re.search(r"Could not override '?([\w/@.]+)'?\.?\s*No match in the defaults list", text)
    if group:
        return f"{group[1]}: no such key or group{nearest(group[1], _keys(verb, args))}"
    cause = error.__cause__ or error
    return next(line for line in str(cause).splitlines() if line.strip()) if str(cause).strip() else type(cause).__name__


def _missing_option(missing: str, args: Sequence[str]) -> str:
    group, _, option = missing.partition("/")
    choices = sorted(options(group, args))
    if not choices:
        return f"{missing}: no such config"
    shown = ", ".join(choices) if len(choices) <= 24 else f"{', '.join(choices[:24])}, ... ({len(choices)})"
    return f"{group}={option}: no such option{nearest(option, choices)} (one of: {shown})"


def options(group: str, args: Sequence[str] = ()) -> Iterable[str]:
    """Every option of a config group, nested ones too, ours and those of --config-dir."""
    for folder in config_folders(args):
        for path in (folder / group).rglob("*.yaml"):
            yield path.relative_to(folder / group).with_suffix("").as_posix()


def config_folders(args: Sequence[str]) -> list[Path]:
    """The shipped configs and the user's own (--config-dir or -cd)."""
    found = [conf_dir()]
    for i, arg in enumerate(args):
        if arg in ("--config-dir", "-cd") and i + 1 < len(args):
            found.append(Path(args[i + 1]))
        elif arg.startswith("--config-dir="):
            found.append(Path(arg.partition("=")[2]))
    return found


def _keys(verb: str, args: Sequence[str]) -> list[str]:
    """The keys of the config without value overrides: what a misspelt key could have meant."""
    groups = {p.name for folder in config_folders(args) for p in folder.iterdir() if p.is_dir()}
    kept = [a for a in args if a.partition("=")[0] in groups]
    try:
        cfg = compose(verb, kept)
    except InputError:
        cfg = compose(verb, [])
    OmegaConf.set_struct(cfg, False)
    return [*leaves(cfg), *groups]

