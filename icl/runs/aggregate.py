"""Aggregation over seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any


def aggregate(by_seed: Mapping[str, float | None]) -> dict[str, Any]:
    """Return `{"mean", "by_seed"}`; the mean is None if one seed is: a diverged seed is not averaged out."""
    values = {str(seed): _finite(value) for seed, value in by_seed.items()}
    return {"mean": _mean(list(values.values())), "by_seed": values}


def _finite(value: float | None) -> float | None:
    return float(value) if value is not None and math.isfinite(value) else None


def _mean(values: Sequence[float | None]) -> float | None:
    defined = [value for value in values if value is not None]
    return math.fsum(defined) / len(defined) if defined and len(defined) == len(values) else None
