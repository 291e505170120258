"""The local minimum of the risk of one head that given weights descend to, by Newton's method.

At a local minimum the Hessian has one zero eigenvalue, that of the scale between b and a: with b c and a / c
the head predicts the same. The scale is that to which gradient flow leads, which conserves |b|^2 - |a|^2.
P token width, K query entries, n = P + K P weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor

from icl.theory.quadratic import QuadraticRisk

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
    local = _Local(risk, *a_KP.shape)
    start_n = np.concatenate([b_P, a_KP.ravel()]).astype(float)
    radius = {"initial_trust_radius": 0.1, "max_trust_radius": 1.0}
    options = {"gtol": GRADIENT, "maxiter": ITERATIONS, **radius}
    at_n = minimize(local.value, start_n, (), "trust-exact", local.gradient, local.hessian, options=options).x
    for _ in range(POLISHED):
        step_n, _ = local.newton(at_n)
        at_n = at_n + step_n
    size = float(np.linalg.norm(step_n) / np.linalg.norm(at_n))
    b_n, a_n = at_n[: len(b_P)], at_n[len(b_P) :]
    c = _scale(b_n @ b_n, a_n @ a_n, float(b_P @ b_P - np.square(a_KP).sum()))
    _, curvature = local.newton(np.concatenate([b_n * c, a_n / c]))
    value = local.value(at_n) * risk.constant
    return LocalMinimum(value, b_n * c, a_n.reshape(a_KP.shape) / c, size, curvature)


def _scale(b2: float, a2: float, conserved: float) -> float:
    """Return c with c^2 |b|^2 - |a|^2 / c^2 as given."""
    return float(np.sqrt((conserved + np.hypot(conserved, 2 * np.sqrt(a2 * b2))) / (2 * b2)))


class _Local:
    """The risk over that of X = 0 in (b, a), with its derivatives: X_k = b a_k^T is bilinear, R quadratic."""

    def __init__(self, risk: QuadraticRisk, keys: int, width: int) -> None:
        self.risk, self.keys, self.width = risk, keys, width

    def value(self, at_n: Floats) -> float:
        return float(self.risk.value(self._X(*self._split(at_n)))) / self.risk.constant

    def gradient(self, at_n: Floats) -> Floats:
        b_P, a_KP = self._split(at_n)
        return self._pulled_back(self._outer_gradient(b_P, a_KP), b_P, a_KP)

    def hessian(self, at_n: Floats) -> Floats:
        """2 J^T M J, J = dX, and the gradient in X between b and a."""
        b_P, a_KP = self._split(at_n)
        G_KPP = self._outer_gradient(b_P, a_KP)
        moved_nKPP = torch.stack(
            [self._X(e_P, a_KP) + self._X(b_P, e_KP) for e_P, e_KP in map(self._split, np.eye(len(at_n)))]
        )
        # X is read as its symmetric part, and the gradient is symmetric
        change_nKPP = self.risk.gradient(moved_nKPP) - self.risk.gradient(torch.zeros_like(moved_nKPP))
        H_nn = torch.einsum("nkpr,mkpr->nm", moved_nKPP, change_nKPP) / self.risk.constant
        P = self.width
        cross_Pm = G_KPP.movedim(1, 0).reshape(P, -1)
        H_nn[:P, P:] += cross_Pm
        H_nn[P:, :P] += cross_Pm.T
        return ((H_nn + H_nn.T) / 2).numpy()

    def newton(self, at_n: Floats) -> tuple[Floats, float]:
        """Return Newton's step across the scale's direction, and the least curvature across it."""
        H_nn, g_n = self.hessian(at_n), self.gradient(at_n)
        scale_n = at_n * np.where(np.arange(len(at_n)) < self.width, 1, -1)  # of b c and a / c
        across_nm = np.linalg.svd(scale_n[None])[2][1:].T
        values_m, vectors_mm = np.linalg.eigh(across_nm.T @ H_nn @ across_nm)
        step_n = -across_nm @ (vectors_mm @ ((vectors_mm.T @ (across_nm.T @ g_n)) / np.abs(values_m)))
        return step_n, float(values_m[0] / values_m[-1])

    def _outer_gradient(self, b_P: Tensor, a_KP: Tensor) -> Tensor:
        return self.risk.gradient(self._X(b_P, a_KP))[: self.keys] / self.risk.constant

    def _pulled_back(self, G_KPP: Tensor, b_P: Tensor, a_KP: Tensor) -> Floats:
        along_b_P = torch.einsum("kpr,kr->p", G_KPP, a_KP)
        return torch.cat([along_b_P, (G_KPP @ b_P).flatten()]).numpy()

    def _split(self, at_n: Floats) -> tuple[Tensor, Tensor]:
        at = torch.from_numpy(np.asarray(at_n, dtype=np.float64))
        return at[: self.width], at[self.width :].view(self.keys, self.width)

    def _X(self, b_P: Tensor, a_KP: Tensor) -> Tensor:
        """b a_k^T, and 0 for the query's last entry."""
        X_KPP = b_P[:, None] * a_KP[:, None]
        return torch.cat([X_KPP, X_KPP.new_zeros(1, self.width, self.width)])
