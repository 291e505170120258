"""Single heads on AR(s) tokens: their support, risk and curvature. K = s query entries, P = s + 1."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from icl.theory.dynamical_system import Moments, coefficients, half_squared_error
from icl.theory.quadratic import HeadsOptimum, QuadraticRisk

SUPPORT = 1e-6  # of the largest entry: less is off the support, at an optimum found to rounding
WEIGHTS = 5  # digits of the weights in the record


def risk_difference(part: Moments, one: HeadsOptimum, other: HeadsOptimum, window: int) -> float:
    """Return the difference of two heads' risks, at fixed weights."""

    def value(head: HeadsOptimum) -> float:
        return float(half_squared_error(part, coefficients(head.b_HP[0], head.a_HKP[0, :window])))

    return value(one) - value(other)


def off_support(b_P: Tensor, a_KP: Tensor, mask_P: Tensor, query_mask_KP: Tensor) -> float:
    """Return the largest entry outside (13), as a share of the largest of its matrix."""
    return max(
        float((entries.abs() * ~mask).max() / entries.abs().max())
        for entries, mask in ((b_P, mask_P), (a_KP, query_mask_KP))
    )


def smallest_curvatures(risk: QuadraticRisk, b_P: Tensor, a_KP: Tensor, count: int = 4) -> list[float]:
    """Return the smallest eigenvalues in (b, a) as shares of the largest; one is 0, the scale between b and
    a."""
    P, K = len(b_P), len(a_KP)

    def value(flat: Tensor) -> Tensor:
        rows_KP = torch.cat([flat[P:].view(K, P), torch.zeros(1, P, dtype=torch.float64)])
        return risk.value_of_heads(flat[None, :P], rows_KP[None])

    at = torch.cat([b_P, a_KP.flatten()])
    values = np.linalg.eigvalsh(torch.autograd.functional.hessian(value, at).numpy())
    return [float(entry) for entry in values[:count] / values[-1]]


def round_weights(matrix: Tensor) -> list[Any]:
    """Return the weights to so many digits, 0 off their support."""
    scaled = torch.where(matrix.abs() > SUPPORT * matrix.abs().max(), matrix, 0.0)
    return torch.round(scaled, decimals=WEIGHTS).tolist()
