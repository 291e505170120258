"""From seeds to one number, and from jobs to an interval."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any


def aggregate(by_seed: Mapping[str, float | None]) -> dict[str, Any]:
    """`{"mean", "by_seed"}`. The mean is None as soon as one seed is: a diverged seed is not averaged out."""
    values = {str(seed): _finite(value) for seed, value in by_seed.items()}
    return {"mean": _mean(list(values.values())), "by_seed": values}


def interval(values: Sequence[float | None], level: float = 0.95) -> dict[str, float | None]:
    """`{"mean", "low", "high"}` by Student's t, which covers as promised at a sweep's handful of values,
    where the bootstrap falls short. One value has no interval; an undefined one makes all three None."""
    finite = [_finite(value) for value in values]
    mean = _mean(finite)
    if mean is None or len(finite) < 2:
        return {"mean": mean, "low": None, "high": None}
    from scipy.stats import t

    count = len(finite)
    variance = math.fsum((value - mean) ** 2 for value in finite if value is not None) / (count - 1)
    half = float(t.ppf(0.5 + level / 2, count - 1)) * math.sqrt(variance / count)
    return {"mean": mean, "low": mean - half, "high": mean + half}


def _finite(value: float | None) -> float | None:
    return float(value) if value is not None and math.isfinite(value) else None


def _mean(values: Sequence[float | None]) -> float | None:
    defined = [value for value in values if value is not None]
    return math.fsum(defined) / len(defined) if defined and len(defined) == len(values) else None
