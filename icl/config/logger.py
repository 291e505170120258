"""The `logger` group of the configuration."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from icl.config.objects import settings_of, target_of
from icl.errors import InputError, one_of, real

# What WANDB_MODE may say, in our words.
_MODES = {"disabled": "none", "dryrun": "offline", "run": "online"}
_KEY = re.compile(r"[0-9a-f]{40}|wandb_v\d+_\S+")  # as W&B gives them out


def under_agent() -> bool:
    """Whether a W&B agent has started this process, for a run of its sweep."""
    return bool(os.environ.get("WANDB_SWEEP_ID"))


@dataclass(frozen=True)
class LoggerSettings:
    """`logger.*`: whether and where W&B is told. No number depends on it.

    The mode `auto` is offline, but online for a W&B agent, whose sweep would lose the run. `lightning` are
    loggers of Lightning's beside W&B, each by its `_target_`.
    """

    mode: str = "auto"
    project: str = "icl"
    entity: str | None = None
    init_timeout: float = 15
    lightning: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "mode", _MODES.get(self.mode, self.mode))
        one_of("logger.mode", self.mode, ("auto", "none", "offline", "online"))
        if self.mode == "auto":
            object.__setattr__(self, "mode", "online" if under_agent() else "offline")
        elif self.mode == "offline" and under_agent():
            raise InputError(
                "logger.mode=offline: must be online under a W&B agent, whose sweep loses the run"
            )
        for name in ("entity", "project"):
            value = str(getattr(self, name))
            if _KEY.fullmatch(value) or value == os.environ.get("WANDB_API_KEY"):
                raise InputError(f"logger.{name}: must be a name; this looks like a key to W&B")
        real("logger.init_timeout", self.init_timeout, 0, open_low=True)
        if not isinstance(self.project, str) or not self.project or set(self.project) & set("/\\#?%:"):
            raise InputError(f"logger.project={self.project}: must be a name without any of / \\ # ? % :")


def logger_of(node: Mapping[str, Any]) -> LoggerSettings:
    """The group as composed: what is a group of its own is a logger of Lightning's."""
    own = {name: entry for name, entry in node.items() if not isinstance(entry, Mapping)}
    lightning = {name: entry for name, entry in node.items() if isinstance(entry, Mapping)}
    for name, entry in lightning.items():
        if name in (f.name for f in fields(LoggerSettings)):
            raise InputError(f"logger.{name}={dict(entry)}: is a setting of W&B's, and no group")
        target_of(f"logger.{name}", entry)
    if "lightning" in own:
        raise InputError("logger.lightning: no such key; a logger stands under a name of its own")
    return settings_of(LoggerSettings, "logger", {**own, "lightning": lightning})
