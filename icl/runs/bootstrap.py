"""An interval for a mean over seeds."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

RESAMPLES = 9999


def bootstrap(values: Sequence[float | None], level: float = 0.95) -> dict[str, float | None]:
    """`{"mean", "low", "high"}` by the percentile bootstrap of the mean over seeds.

    Always the same resamples for as many seeds, so the same numbers give the same interval. From few seeds it
    is too short: of normal values, `level` = 0.95 covers the mean 85 times in 100 from 5 of them, 91 from 10.
    One value has no interval; an undefined one makes all three None.
    """
    defined = [float(value) for value in values if value is not None and math.isfinite(value)]
    if not defined or len(defined) < len(values):
        return {"mean": None, "low": None, "high": None}
    mean = math.fsum(defined) / len(defined)
    if len(defined) == 1:
        return {"mean": mean, "low": None, "high": None}
    import numpy as np

    means = _resampling(len(defined)) @ (np.array(defined) - mean)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return {"mean": mean, "low": mean + float(low), "high": mean + float(high)}


@functools.lru_cache(maxsize=8)
def _resampling(count: int) -> np.ndarray:
    """Each row the weights of one resample's mean over `count` values."""
    from icl.random import generator

    return generator(count, "bootstrap").multinomial(count, [1 / count] * count, RESAMPLES) / count
