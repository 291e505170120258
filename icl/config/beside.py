"""Keys that are typed within a group whose class does not take them, as `optimizer.schedule.every`.

They are composed beside the group, so that `hydra.utils.instantiate(cfg.optimizer, params=...)` works.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

BESIDE = {"optimizer.schedule": "schedule", "check.weights": "weights", "check.expected": "expected"}


def as_composed(key: str) -> str:
    """The key in a composed config of what is typed so."""
    return _renamed(key, BESIDE)


def as_typed(key: str) -> str:
    """Return a composed config's key as the user types it."""
    return _renamed(key, {beside: typed for typed, beside in BESIDE.items()})


def _renamed(key: str, names: Mapping[str, str]) -> str:
    for name, other in names.items():
        if key == name or key.startswith(f"{name}."):
            return other + key.removeprefix(name)
    return key


def as_settings(composed: Mapping[str, Any]) -> dict[str, Any]:
    """A composed config, without Hydra's part, with every key where it is typed."""
    settings = dict(composed)
    for typed, key in BESIDE.items():
        group, _, name = typed.partition(".")
        if key in settings:
            value = settings.pop(key)
            if isinstance(settings.setdefault(group, {}), dict):
                settings[group] = {**settings[group], name: value}
    return settings
