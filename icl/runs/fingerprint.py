"""Fingerprints: the names that records are filed under."""

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

from icl.errors import InputError

SEEDS = ("seed", "seeds")
KEYS_WITHOUT_EFFECT = (  # of a config: no number depends on them
    "format", "force", "stale", "paths", "logger", "hydra", "sweep",
)  # fmt: skip


def fingerprint(scientific: Mapping[str, Any]) -> str:
    """Twelve hexadecimal digits that depend on the values in `scientific` alone.

    The order of keys does not matter; 1 and 1.0, tuples and lists, numpy's numbers and Python's are the same.
    """
    text = json.dumps(_canonical("", scientific), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _canonical(key: str, value: Any) -> Any:
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        if not all(isinstance(name, str) for name in value):
            raise TypeError(f"{key or 'fingerprint'}: keys must be strings")
        return {name: _canonical(f"{key}.{name}".lstrip("."), entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_canonical(f"{key}[{i}]", entry) for i, entry in enumerate(value)]
    if isinstance(value, float):
        if math.isnan(value):
            raise InputError(f"{key.removeprefix('settings.')}=nan: must be a number")
        return int(value) if value.is_integer() else value
    if value is None or isinstance(value, str | int):
        return value
    raise TypeError(f"{key}: {type(value).__name__} has no place in a fingerprint")


def has_no_effect(key: str) -> bool:
    """Return whether no number depends on a config key, such as paths.outputs or hydra/launcher."""
    return key.partition(".")[0].partition("/")[0] in KEYS_WITHOUT_EFFECT
