"""Hydra's flags, read by Hydra's own parser; a bad one is one line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NoReturn

from hydra._internal.utils import get_args_parser

from icl.errors import InputError


def parse_flags(verb: str, args: Sequence[str]) -> argparse.Namespace:
    """Flags and `overrides`; `flags` are the arguments without these."""
    parser = get_args_parser()

    def complain(message: str) -> NoReturn:
        raise InputError(f"icl {verb}: {message} (icl {verb} --help shows what can be set)")

    parser.error = complain  # type: ignore[method-assign]
    parsed = parser.parse_intermixed_args(list(args))
    parsed.flags = list(args)
    for override in parsed.overrides:
        if "=" not in override and not override.startswith("~"):
            raise InputError(f"{override}: must have the form KEY=VALUE")
        parsed.flags.remove(override)
    return parsed


def chosen(key: str, overrides: Sequence[str]) -> str | None:
    """What the last override of `key` says."""
    pairs = [override.partition("=") for override in overrides]
    return next((v.strip("'\"") for k, _, v in reversed(pairs) if k.lstrip("+") == key), None)
