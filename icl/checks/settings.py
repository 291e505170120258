"""What the settings of most checks have in common: integers with a limit, and the law of the prompts."""

from __future__ import annotations

from typing import Any

from icl.errors import InputError, whole
from icl.tasks import LinearRegression, LinearRegressionLaw

HELD = 2**27  # numbers of one array: a gigabyte, of which a check holds a few
MOST_STARTS, MOST_DRAWN = 10**5, 10**9  # days


def in_range(key: str, value: Any, low: int, high: int, reason: str) -> int:
    """`value` as an int from `low` to `high`; `reason` says what goes wrong beyond."""
    if whole(key, value, low) > high:
        raise InputError(f"{key}={value}: must be from {low} to {high}; beyond, {reason}")
    return int(value)


def fits_in_memory(samples: Any, low: int, each: int) -> int:
    """`check.samples`, where each takes so many numbers of an array that is held as a whole."""
    return in_range("check.samples", samples, low, max(low, HELD // each), "they fill the memory")


def affordable_samples(samples: Any, low: int) -> int:
    """`check.samples`, drawn and forgotten in parts."""
    return in_range("check.samples", samples, low, MOST_DRAWN, "drawing them takes days")


def affordable_starts(key: str, value: Any, low: int) -> int:
    """How often a search begins."""
    return in_range(key, value, low, MOST_STARTS, "the search takes days")


def law_of(dim: int, context: int, seed: int, **covariances: Any) -> LinearRegressionLaw:
    """The task's law at one seed, every setting named as the check's own."""
    whole("check.dim", dim, 1)
    whole("check.context", context, 1)
    task = LinearRegression(dim, context, prefix="check", **covariances)
    return task.law([whole("check.seed", seed, 0)])
