"""An interval for a mean over seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

FEWEST = 5  # seeds, from which on an interval is Student's
RANGE, STUDENT = "range", "95 % Student's t"


def seed_interval(values: Sequence[float | None], level: float = 0.95) -> dict[str, float | None]:
    """`{"mean", "low", "high"}`: the range of two to four seeds, from five on the interval of Student's t.

    One value has no interval; an undefined one makes all three None. How often the interval covers the mean:
    docs/sweeps.md.
    """
    defined = [float(value) for value in values if value is not None and math.isfinite(value)]
    if not defined or len(defined) < len(values):
        return {"mean": None, "low": None, "high": None}
    count, mean = len(defined), math.fsum(defined) / len(defined)
    if count == 1:
        return {"mean": mean, "low": None, "high": None}
    if count < FEWEST:
        return {"mean": mean, "low": min(defined), "high": max(defined)}
    from scipy.special import stdtrit

    largest = max(abs(value - mean) for value in defined) or 1.0  # squares of large values overflow
    squares = math.fsum(((value - mean) / largest) ** 2 for value in defined)
    error = largest * math.sqrt(squares / (count - 1) / count)
    half = float(stdtrit(count - 1, (1 + level) / 2)) * error
    return {"mean": mean, "low": mean - half, "high": mean + half}


def interval_name(seeds: int) -> str:
    """Return what an interval over so many seeds is; "" where there is none."""
    return "" if seeds < 2 else RANGE if seeds < FEWEST else STUDENT


def interval_fields(values: Sequence[float | None]) -> dict[str, Any]:
    """Return `seed_interval` with its name as `interval`."""
    found = seed_interval(values)
    return {**found, "interval": "" if found["low"] is None else interval_name(len(values))}
