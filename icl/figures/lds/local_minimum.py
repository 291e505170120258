"""The local minimum of the risk of one head that given weights descend to, by Newton's method.

At a local minimum the Hessian has one zero eigenvalue, that of the scale between b and a: with b c and a / c
the head predicts the same. The scale is that to which gradient flow leads, which conserves |b|^2 - |a|^2.
P token width, K query entries, n = P + K P weights.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor
from torch.autograd.functional import hessian, jacobian

from icl.tasks.quadratic import QuadraticRisk

ITERATIONS, POLISHED = 2000, 3  # steps within a trust region; of Newton alone
GRADIENT = 1e-8  # of the risk at X = 0: the trust region ends there
CLOSE, CURVED = 1e-6, 1e-9  # a Newton step, of the weights; an eigenvalue, of the largest

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LocalMinimum:
    """Weights at the end of the descent. `step`: the last Newton step, relative to the weights. `curvature`:
    the least eigenvalue of the Hessian but that of the scale, relative to the largest."""

    value: float
    b_P: Floats
    a_KP: Floats
    step: float
    curvature: float

    @property
    def reached(self) -> bool:
        """Return whether this is a strict local minimum, but for the scale, and the weights are at it."""
        return self.step <= CLOSE and self.curvature >= CURVED


def descend(risk: QuadraticRisk, b_P: Floats, a_KP: Floats) -> LocalMinimum:
    """Descend from one head within a trust region, so that no ridge is crossed far from it."""
    P = len(b_P)

    def value(at_n: Tensor) -> Tensor:
        """Return the risk over that of X = 0; the query's last entry has no keys."""
        a_PP = torch.cat([at_n[P:], at_n.new_zeros(P)]).view(-1, P)
        return risk.value_of_heads(at_n[None, :P], a_PP[None]) / risk.constant

    def gradient(at_n: Floats) -> Floats:
        return jacobian(value, torch.from_numpy(at_n)).numpy()

    def curvature(at_n: Floats) -> Floats:
        return hessian(value, torch.from_numpy(at_n)).numpy()

    def newton(at_n: Floats) -> tuple[Floats, float]:
        """Return Newton's step across the scale's direction, and the least curvature across it."""
        scale_n = at_n * np.where(np.arange(len(at_n)) < P, 1, -1)  # of b c and a / c
        across_nm = np.linalg.svd(scale_n[None])[2][1:].T
        values_m, vectors_mm = np.linalg.eigh(across_nm.T @ curvature(at_n) @ across_nm)
        slope_m = vectors_mm.T @ (across_nm.T @ gradient(at_n))
        return -across_nm @ (vectors_mm @ (slope_m / np.abs(values_m))), float(values_m[0] / values_m[-1])

    start_n = np.concatenate([b_P, a_KP.ravel()]).astype(float)
    options = {"gtol": GRADIENT, "maxiter": ITERATIONS, "initial_trust_radius": 0.1, "max_trust_radius": 1.0}
    how = {"method": "trust-exact", "jac": gradient, "hess": curvature, "options": options}
    at_n = minimize(lambda at_n: float(value(torch.from_numpy(at_n))), start_n, **how).x
    for _ in range(POLISHED):
        step_n, _ = newton(at_n)
        at_n = at_n + step_n
    b_n, a_n = at_n[:P], at_n[P:]
    c = _scale(b_n @ b_n, a_n @ a_n, float(b_P @ b_P - np.square(a_KP).sum()))
    b_n, a_n = b_n * c, a_n / c
    return LocalMinimum(
        value=float(value(torch.from_numpy(at_n))) * risk.constant,
        b_P=b_n,
        a_KP=a_n.reshape(a_KP.shape),
        step=float(np.linalg.norm(step_n) / np.linalg.norm(at_n)),
        curvature=newton(np.concatenate([b_n, a_n]))[1],
    )


def _scale(b2: float, a2: float, conserved: float) -> float:
    """Return c with c^2 |b|^2 - |a|^2 / c^2 as given."""
    return float(np.sqrt((conserved + np.hypot(conserved, 2 * np.sqrt(a2 * b2))) / (2 * b2)))
