"""Keys that a user writes within a group whose class does not take them, as `optimizer.schedule.every`.

They are composed outside the group, so that `hydra.utils.instantiate(cfg.optimizer, params=...)` works.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

COMPOSED_KEYS = {"optimizer.schedule": "schedule", "check.weights": "weights", "check.expected": "expected"}


def composed_key(key: str) -> str:
    """Return the key under which a composed config has a user's key."""
    return _renamed(key, COMPOSED_KEYS)


def user_key(key: str) -> str:
    """Return a composed config's key as the user writes it."""
    return _renamed(key, {composed: user for user, composed in COMPOSED_KEYS.items()})


def _renamed(key: str, names: Mapping[str, str]) -> str:
    for name, other in names.items():
        if key == name or key.startswith(f"{name}."):
            return other + key.removeprefix(name)
    return key


def nested_settings(composed: Mapping[str, Any]) -> dict[str, Any]:
    """Return a composed config, without Hydra's part, with every key where the user writes it."""
    settings = dict(composed)
    for user, key in COMPOSED_KEYS.items():
        group, _, name = user.partition(".")
        if key in settings:
            value = settings.pop(key)
            if isinstance(settings.setdefault(group, {}), dict):
                settings[group] = {**settings[group], name: value}
    return settings
