"""Hydra's flags, read by Hydra's own parser; a bad one is one line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NoReturn

from hydra._internal.utils import get_args_parser

from icl.errors import InputError

# What Hydra's applications take and icl does not, and why.
_REFUSED = {
    "config_path": "the configs of icl stay where they are; --config-dir DIR adds yours",
    "config_name": "the verb names the config; --config-dir DIR adds yours",
    "experimental_rerun": "would run what a pickle says; the same command repeats a run",
}
_ONE_OF = ("run", "multirun", "cfg", "info", "hydra_help", "shell_completion")


def parse_flags(verb: str, args: Sequence[str]) -> argparse.Namespace:
    """Flags and `overrides`."""
    parser = get_args_parser()

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
            raise InputError(f"{_flag(name)}: only beside --cfg")
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
