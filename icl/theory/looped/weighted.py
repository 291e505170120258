"""The risk of one layer applied L times on weighted values of G: nodes of a rule, or draws.

J nodes or draws, D covariates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from icl.theory.plane_rule import plane_rule

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class WeightedRisk:
    """f(A) = sum_j weight_j |(I - A^T G_j)^L|_F^2."""

    G_JDD: Array
    weight_J: Array
    layers: int

    def value(self, A_DD: Array) -> float:
        M_JDD = np.eye(len(A_DD)) - A_DD.T @ self.G_JDD
        return float(self.weight_J @ np.square(np.linalg.matrix_power(M_JDD, self.layers)).sum((1, 2)))

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
