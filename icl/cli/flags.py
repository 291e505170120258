"""Hydra's flags; a bad one is one line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NoReturn

import hydra

from icl.errors import InputError

# What Hydra's applications take and icl does not, and why.
_REFUSED = {
    "config_path": "the configs of icl stay where they are; --config-dir DIR adds yours",
    "config_name": "the verb selects the config; --config-dir DIR adds yours",
    "experimental_rerun": "would run code from a pickle; the same command repeats a run",
}
_SHORT = {"config_path": ("-cp",), "config_name": ("-cn",)}
_INFO = ("all", "config", "defaults", "defaults-tree", "plugins", "searchpath")
_ONE_OF = ("run", "multirun", "cfg", "info", "hydra_help", "shell_completion")


def flag_parser() -> argparse.ArgumentParser:
    """Return a parser of the flags that Hydra's own applications take."""
    parser = argparse.ArgumentParser(add_help=False, description="icl")
    parser.add_argument("overrides", nargs="*", help="KEY=VALUE, with dots for.nested=values")
    parser.add_argument("--help", "-h", action="store_true", help="what can be set")
    parser.add_argument("--hydra-help", action="store_true", help="Hydra's help")
    parser.add_argument("--version", action="version", version=f"Hydra {hydra.__version__}", help="Hydra's")
    parser.add_argument("--cfg", "-c", choices=("job", "hydra", "all"), help="show the config instead")
    parser.add_argument("--resolve", action="store_true", help="with --cfg: interpolations resolved")
    parser.add_argument("--package", "-p", help="with --cfg: a part of the config")
    parser.add_argument("--run", "-r", action="store_true", help="run a job")
    parser.add_argument("--multirun", "-m", action="store_true", help="every combination of a,b,c")
    parser.add_argument("--shell-completion", "-sc", action="store_true", help="query=bash, install=bash")
    parser.add_argument("--config-dir", "-cd", help="a folder of configs of your own")
    parser.add_argument("--info", "-i", const="all", nargs="?", choices=_INFO, help="about the composition")
    for name, reason in _REFUSED.items():
        parser.add_argument(_flag(name), *_SHORT.get(name, ()), help=f"not here: {reason}")
    return parser


def parse_flags(verb: str, args: Sequence[str]) -> argparse.Namespace:
    """Return the flags, and `overrides`."""
    parser = flag_parser()

    def complain(message: str) -> NoReturn:
        raise InputError(f"icl {verb}: {message} (icl {verb} --help shows what can be set)")

    parser.error = complain  # type: ignore[method-assign]
    parsed = parser.parse_intermixed_args(list(args))
    for name, reason in _REFUSED.items():
        if getattr(parsed, name) is not None:
            raise InputError(f"{_flag(name)}: {reason}")
    given = [_flag(name) for name in _ONE_OF if getattr(parsed, name)]
    if len(given) > 1:
        raise InputError(f"{' and '.join(given)}: only one of them at a time")
    for name in ("package", "resolve"):
        if getattr(parsed, name) and not parsed.cfg:
            raise InputError(f"{_flag(name)}: only with --cfg")
    for override in parsed.overrides:
        if "=" not in override and not override.startswith("~"):
            raise InputError(f"{override}: must have the form KEY=VALUE")
    return parsed


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def chosen(key: str, overrides: Sequence[str]) -> str | None:
    """Return the value of the last override of `key`."""
    pairs = [override.partition("=") for override in overrides]
    return next((v.strip("'\"") for k, _, v in reversed(pairs) if k.lstrip("+") == key), None)
