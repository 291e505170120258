"""The `logger` group of the configuration."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from icl.config.objects import settings_of, target_of
from icl.errors import InputError, nearest, one_of, real
from icl.redact import holds_secret

# Values of WANDB_MODE, and logger.mode for each.
_MODES = {"disabled": "none", "dryrun": "offline", "run": "online"}
_KEY = re.compile(r"[0-9a-f]{40}|wandb_v\d+_\S+")  # as W&B gives them out; in a record it may be a digest
# Settings of wandb.Settings that `logger.settings` turns on again: they would store the command line, the
# environment, the code, what is printed, and the machine.
PRIVATE = {
    "console": "off",
    "disable_git": True,
    "disable_code": True,
    "save_code": False,
    "label_disable": True,
    "x_disable_stats": True,
    "x_disable_meta": True,
    "x_disable_machine_info": True,
    "x_save_requirements": False,
}
_SHIPPED = ("", "icl")  # what the names are where nobody sets them
# What else sets a setting of wandb.Settings; "" where nothing does.
_ELSEWHERE = {
    "mode": "logger.mode", "project": "logger.project", "entity": "logger.entity", "run_name": "logger.name",
    "run_group": "logger.group", "run_job_type": "logger.job_type", "run_tags": "logger.tags",
    "run_notes": "logger.notes", "init_timeout": "logger.init_timeout", "root_dir": "paths.outputs",
    "api_key": "WANDB_API_KEY", "base_url": "WANDB_BASE_URL",
    **dict.fromkeys(("run_id", "resume", "resume_from", "fork_from", "reinit"), ""),
    **dict.fromkeys(("quiet", "silent", "symlink", "program", "use_dot_wandb"), ""),
}  # fmt: skip


def under_agent() -> bool:
    """Return whether a W&B agent has started this process for a run of its sweep."""
    return bool(os.environ.get("WANDB_SWEEP_ID"))


@dataclass(frozen=True)
class LoggerSettings:
    """`logger.*`: whether and where W&B logs. No number depends on it.

    The mode `auto` is offline, but online for a W&B agent, whose sweep would lose the run. `name`, `group`
    and `job_type` replace those a run has of itself; `tags`, a list or the text a,b, are added to its own.
    `settings` are of wandb.Settings. `lightning` are loggers of Lightning's beside W&B, each by its
    `_target_`.
    """

    mode: str = "auto"
    project: str = "icl"
    entity: str | None = None
    init_timeout: float = 15
    name: str | None = None
    group: str | None = None
    job_type: str | None = None
    notes: str | None = None
    tags: Sequence[str] | str | None = ()
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
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
        for name in ("name", "group", "job_type", "notes"):
            value = getattr(self, name)
            if not isinstance(value, str | None):
                raise InputError(f"logger.{name}={value}: must be a string")
            object.__setattr__(self, name, value or None)  # an empty variable says nothing
        object.__setattr__(self, "tags", _tags(self.tags))
        for name in ("entity", "project", "name", "group", "job_type", "notes", "tags"):
            value = getattr(self, name)
            for text in value if isinstance(value, tuple) else (str(value or ""),):
                # What names W&B's places cannot be redacted as the rest is.
                is_secret = name in ("entity", "project") and text not in _SHIPPED and holds_secret(text)
                if is_secret or _KEY.fullmatch(text) or text == os.environ.get("WANDB_API_KEY"):
                    raise InputError(f"logger.{name}: must be a name; this looks like a key to W&B")
        real("logger.init_timeout", self.init_timeout, 0, open_low=True)
        if not isinstance(self.project, str) or not self.project or set(self.project) & set("/\\#?%:"):
            raise InputError(f"logger.project={self.project}: must be a name without any of / \\ # ? % :")
        if not isinstance(self.settings, Mapping):
            raise InputError(f"logger.settings={self.settings}: must be a group of settings")
        object.__setattr__(self, "settings", {**PRIVATE, **self.settings})
        if self.mode != "none":
            _validate_wandbs(self.settings)


def _tags(given: Any) -> tuple[str, ...]:
    """Tags without duplicates, in their order; WANDB_TAGS separates them by commas."""
    tags = given.split(",") if isinstance(given, str) else given or ()
    if not isinstance(tags, list | tuple) or not all(isinstance(tag, str) for tag in tags):
        raise InputError(f"logger.tags={given}: must be a list of strings")
    found = tuple(dict.fromkeys(tag.strip() for tag in tags if tag.strip()))
    for tag in found:
        if len(tag) > 64:
            raise InputError(f"logger.tags: {tag[:20]}... has {len(tag)} characters; W&B takes 64")
    return found


def _validate_wandbs(settings: Mapping[str, Any]) -> None:
    """W&B judges its own settings, where others are given than those that are shipped: to import it takes
    half a second."""
    for name in settings:
        if name in _ELSEWHERE:
            where = f"{_ELSEWHERE[name]} sets it" if _ELSEWHERE[name] else "icl sets it"
            raise InputError(f"logger.settings.{name}: {where}")
    if settings == PRIVATE:
        return
    import wandb
    from pydantic import ValidationError

    known = list(wandb.Settings.model_fields)
    for name in settings:
        if name not in known:
            raise InputError(f"logger.settings.{name}: no such setting{nearest(name, known)}")
    try:
        wandb.Settings(**settings)
    except ValidationError as error:
        wrong = error.errors()[0]
        name = str(wrong["loc"][0]) if wrong["loc"] else ""
        raise InputError(f"logger.settings.{name}={settings.get(name)}: {wrong['msg']}") from None
    except (wandb.Error, TypeError, ValueError) as error:
        raise InputError(f"logger.settings: {str(error).splitlines()[0]}") from None


def logger_of(node: Mapping[str, Any]) -> LoggerSettings:
    """Parse the group as composed; a nested group is a logger of Lightning's."""
    lightning = {k: entry for k, entry in node.items() if isinstance(entry, Mapping) and k != "settings"}
    own = {name: entry for name, entry in node.items() if name not in lightning}
    for name, entry in lightning.items():
        if name in (f.name for f in fields(LoggerSettings)):
            raise InputError(f"logger.{name}={dict(entry)}: is a setting of W&B's, and no group")
        target_of(f"logger.{name}", entry)
    if "lightning" in own:
        raise InputError("logger.lightning: no such key; a logger stands under a name of its own")
    return settings_of(LoggerSettings, "logger", {**own, "lightning": lightning})
