"""Gradient descent on log f at d = 2, where f is a sum over the nodes of a rule for G, in floats.

Descent on log f has the paths of descent on f and does not slow down as the risk falls. A step that would
raise the risk is halved and tried again; one that does not is followed by a longer one. J nodes.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from icl.theory.plane_rule import plane_rule

Array = NDArray[np.float64]
LONGER, FIRST_STEP = 1.1, 0.02


@dataclass(frozen=True, eq=False)
class WeightedRisk:
    """f(A) = sum_j weight_j |(I - A^T G_j)^L|_F^2."""

    G_JDD: Array
    weight_J: Array
    layers: int

    def with_gradient(self, A_DD: Array) -> tuple[float, Array]:
        """Return f and df/dA = -2 sum_j weight_j sum_k G_j M_j^(L-1-k) (M_j^L)^T M_j^k."""
        M_JDD = np.eye(len(A_DD)) - A_DD.T @ self.G_JDD
        powers = [np.broadcast_to(np.eye(len(A_DD)), M_JDD.shape)]
        for _ in range(self.layers):
            powers.append(powers[-1] @ M_JDD)
        value = float(self.weight_J @ np.square(powers[-1]).sum((1, 2)))
        back_JDD = self.weight_J[:, None, None] * powers[-1].mT
        slope_JDD = np.zeros_like(M_JDD)
        for k in reversed(range(self.layers)):  # back is M^(L-1-k) (M^L)^T with the weight
            slope_JDD += back_JDD @ powers[k]
            back_JDD = M_JDD @ back_JDD
        return value, -2 * np.einsum("jik,jkl->il", self.G_JDD, slope_JDD)


def plane_risk(context: int, layers: int) -> WeightedRisk:
    """Return f at d = 2 as a weighted sum of squares, for any A and with its gradient."""
    return WeightedRisk(*plane_rule(context, 2 * layers), layers)


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
