"""Gradient descent on log f at d = 2, where the gradient is exact, in floats.

Descent on log f has the paths of descent on f and does not slow down as the risk falls. A step that would
raise the risk is halved and tried again; one that does not is followed by a longer one.
"""

from __future__ import annotations

import numpy as np

from icl.theory.looped.weighted import Array, WeightedRisk

LONGER, FIRST_STEP = 1.1, 0.02


def descend(risk: WeightedRisk, A_DD: Array, steps: int) -> tuple[Array, Array]:
    """Return (A_TDD, risk_T) at every step, the start included."""
    (value, slope_DD), rate = risk.with_gradient(A_DD), FIRST_STEP
    path, values = [A_DD], [value]
    for _ in range(steps):
        moved_DD = A_DD - rate * slope_DD / value
        new, new_slope_DD = risk.with_gradient(moved_DD)
        if new <= value:
            A_DD, value, slope_DD, rate = moved_DD, new, new_slope_DD, LONGER * rate
        else:
            rate /= 2
        path.append(A_DD)
        values.append(value)
    return np.stack(path), np.array(values)
