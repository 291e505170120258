"""Hydra, with its errors turned into one line each."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import hydra
from hydra._internal.utils import get_args_parser
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from icl.cli import multirun
from icl.cli.app import say_failure
from icl.cli.outcome import FAILED, OK, Outcome, emit, stdout_kept_for_results
from icl.config import conf_dir, leaves, register_resolvers
from icl.errors import InputError, Interrupted, nearest

SWEPT = ("train", "check", "figure")  # take -m; Hydra's own sweeper, of the others, writes multirun.yaml
_MOST_CHOICES_SHOWN = 24
_user_folder: Path | None = None  # of --config-dir


def run_hydra(
    verb: str,
    args: Sequence[str],
    job: Callable[[DictConfig], Outcome],
    validate: Callable[[DictConfig], object],
) -> int:
    """Composes conf/VERB.yaml with `args` and runs `job`, once or, with -m, for every combination."""
    flags = parse_flags(verb, args)
    if verb not in SWEPT and (flags.multirun or "hydra.mode=MULTIRUN" in flags.overrides):
        raise InputError(f"{verb}: runs many already; -m is for the settings of one")
    use_config_dir(flags.config_dir)
    register_resolvers()
    os.environ["HYDRA_FULL_ERROR"] = "1"  # so that errors come to us
    multirun.start(validate)
    ended: list[Outcome | BaseException] = []
    forms: list[str] = []

    def once(cfg: DictConfig) -> None:
        # Hydra would write a line of its own about an exception that leaves the job.
        try:
            with stdout_kept_for_results():
                ended.append(job(cfg))
            forms.append(cfg.format)
        except BaseException as error:
            ended.append(error)

    task = multirun.Task(job, flags.config_dir, os.getpid()) if flags.multirun else once
    before = sys.argv
    sys.argv = [f"icl {verb}", *_flags_first(args, flags.overrides)]
    try:
        hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name=verb)(task)()
    except (HydraException, OmegaConfBaseException) as error:
        raise InputError(explain(verb, args, error)) from None
    finally:
        sys.argv = before
    if flags.multirun:
        return multirun.finished()
    if not ended:
        return OK  # --cfg, --info, shell completion
    return _single(ended[0], forms, verb, args)


def _single(ended: Outcome | BaseException, forms: Sequence[str], verb: str, args: Sequence[str]) -> int:
    """Result on stdout, failure on stderr. SystemExit never leaves a job."""
    if isinstance(ended, Outcome):
        emit(ended, forms[0])
        return ended.exit_code
    if isinstance(ended, OmegaConfBaseException):
        raise InputError(explain(verb, args, ended)) from None
    if isinstance(ended, InputError | Interrupted | KeyboardInterrupt | BrokenPipeError):
        raise ended
    say_failure("", ended, tell_all="verbose=true" in args)
    return FAILED


def parse_flags(verb: str, args: Sequence[str]) -> argparse.Namespace:
    """Hydra's flags; a bad one is one line."""
    parser = get_args_parser()

    def complain(message: str) -> NoReturn:
        raise InputError(f"icl {verb}: {message} (icl {verb} --help shows what can be set)")

    parser.error = complain  # type: ignore[method-assign]
    flags = parser.parse_intermixed_args(list(args))
    for override in flags.overrides:
        if "=" not in override and not override.startswith("~"):
            raise InputError(f"{override}: must have the form KEY=VALUE")
    if flags.config_dir is not None and not Path(flags.config_dir).is_dir():
        raise InputError(f"--config-dir {flags.config_dir}: no such folder")
    return flags


def _flags_first(args: Sequence[str], overrides: Sequence[str]) -> list[str]:
    """Hydra's own parser stumbles over a flag between two overrides."""
    rest = list(args)
    for override in overrides:
        rest.remove(override)
    return [*rest, *overrides]


def use_config_dir(folder: str | None) -> None:
    """Makes the user's own configs part of `compose` and `options` in this process."""
    global _user_folder
    _user_folder = None if folder is None else Path(folder).absolute()


def config_folders() -> list[Path]:
    """The shipped configs and the user's own."""
    return [conf_dir()] if _user_folder is None else [conf_dir(), _user_folder]


def options(group: str) -> Iterator[str]:
    """Every option of a config group, nested ones too, ours and the user's."""
    for folder in config_folders():
        for path in (folder / group).rglob("*.yaml"):
            yield path.relative_to(folder / group).with_suffix("").as_posix()


def one_option(group: str, name: str) -> str:
    """`name`, or what there is instead."""
    choices = sorted(set(options(group)))
    if name in choices:
        return name
    if not choices:
        raise InputError(f"{group}={name}: no such config")
    shown = ", ".join(choices[:_MOST_CHOICES_SHOWN])
    rest = f", ... ({len(choices)})" if len(choices) > _MOST_CHOICES_SHOWN else ""
    raise InputError(f"{group}={name}: no such option{nearest(name, choices)} (one of: {shown}{rest})")


def chosen_option(group: str) -> str | None:
    """What Hydra composed for `group` in the job at hand."""
    return HydraConfig.get().runtime.choices.get(group)


def compose(verb: str, overrides: Sequence[str]) -> DictConfig:
    """A composed config without a Hydra run around it."""
    try:
        return _composed(verb, overrides)
    except (HydraException, OmegaConfBaseException) as error:
        raise InputError(explain(verb, overrides, error)) from None


def _composed(verb: str, overrides: Sequence[str]) -> DictConfig:
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir

    register_resolvers()
    search = [] if _user_folder is None else [f"hydra.searchpath=['file://{_user_folder}']"]
    held = GlobalHydra.instance().hydra
    GlobalHydra.instance().clear()
    try:
        with initialize_config_dir(str(conf_dir()), version_base="1.3", job_name=f"icl {verb}"):
            return hydra_compose(verb, [*overrides, *search])
    finally:
        GlobalHydra.instance().clear()
        if held is not None:
            GlobalHydra.instance().initialize(held)


def explain(verb: str, args: Sequence[str], error: Exception) -> str:
    """One line for an error of Hydra or OmegaConf, with the nearest choice where there is one."""
    text = str(error)
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        group, option = _group_and_option(error.missing_cfg_file)
        try:
            one_option(group, option)
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
        known = [name for name in _keys(verb, args) if name != key]
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


def _keys(verb: str, args: Sequence[str]) -> list[str]:
    """The keys of the config with the groups as chosen: what a misspelt key could have meant."""
    groups = {path.name for folder in config_folders() for path in folder.iterdir() if path.is_dir()}
    for kept in ([a for a in args if a.partition("=")[0].lstrip("+") in groups], []):
        with contextlib.suppress(HydraException, OmegaConfBaseException):
            return [*leaves(_composed(verb, kept)), *groups]
    return sorted(groups)


def literal(value: Any) -> str:
    """A Python value in Hydra's override grammar."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(literal, value)) + "]"
    return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'") + "'"
