"""Dimensions that follow from arrays given on the command line: `check.covariance=sigma.npy` sets check.dim.

A dimension that is typed beside an array stays as typed; the constructor refuses one that contradicts it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

AXES = {
    "eigenvalues": ("dim",),
    "covariance": ("dim",),
    "distortion": ("dim",),
    "task_covariance": ("dim",),
    "prior_mean": ("dim",),
    "guess_vector": ("dim",),
    "spectrum": ("dim",),
    "design": ("context", "dim"),
}  # the settings that an array's axes are as long as
_GROUPS = ("task", "check")


def dims_of(typed: Mapping[str, Any]) -> dict[str, int]:
    """Return the settings that follow from the typed values, by dotted key; those that are typed do not."""
    found: dict[str, int] = {}
    for key, value in typed.items():
        group, _, name = key.partition(".")
        if group in _GROUPS and name in AXES:
            for axis, length in zip(AXES[name], _shape(value), strict=False):
                found.setdefault(f"{group}.{axis}", length)
    return {key: length for key, length in found.items() if key not in typed}


def shape_of_file(path: Path) -> tuple[int, ...]:
    """Return the shape of the array in a .npy file, () where it cannot be read."""
    import numpy as np

    try:
        return tuple(np.load(path, "r", allow_pickle=False).shape)
    except (OSError, ValueError, EOFError, AttributeError):
        return ()


def _shape(value: Any) -> tuple[int, ...]:
    if isinstance(value, str):
        return shape_of_file(Path(value)) if value.endswith(".npy") else ()
    return tuple(_lengths(value))


def _lengths(value: Any) -> Iterator[int]:
    while isinstance(value, list) and value:
        yield len(value)
        value = value[0]
