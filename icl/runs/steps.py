"""At which steps of a run something is kept."""

from __future__ import annotations

from icl.errors import whole


def log_spaced_steps(total: int, count: int) -> list[int]:
    """At most `count` steps from 1 to `total`, evenly spaced in the logarithm as far as whole steps allow."""
    import numpy as np

    whole("steps", total, 1)
    whole("count", count, 1)
    if count == 1:
        return [total]
    return sorted({round(step) for step in np.geomspace(1, total, count).tolist()})
