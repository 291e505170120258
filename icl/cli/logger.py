"""The `logger` group of a config as settings."""

from __future__ import annotations

from typing import Any

from icl.config import plain
from icl.errors import InputError
from icl.sinks.sink import LoggerSettings


def logger_settings(node: Any) -> LoggerSettings:
    try:
        return LoggerSettings(**plain(node))
    except TypeError:
        raise InputError(f"logger={node}: must be one of none, wandb_offline, wandb_online") from None
