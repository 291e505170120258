"""Least risk of a stack over a linear family of its matrices, by many descents and Newton's method.

L layers, D covariates, V coefficients in a basis of the family, K starts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

FAMILIES = ("diagonal", "symmetric", "free")

Risk = Callable[[Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class Optimum:
    """Best of the runs; its risk is within `accuracy` of the local minimum there. Runs differ by `spread`."""

    A_LDD: Tensor
    risk: float
    accuracy: float
    spread: float


def search(
    family: str, risk: Risk, given: Sequence[Tensor], starts: int, rng: np.random.Generator
) -> Optimum:
    """Best of the given and of random starts; L-BFGS runs all at once, on the sum of their risks.

    Without rounding, `accuracy` is what another Newton step could gain.
    """
    basis_VDD = basis(family, given[0].shape[-1])

    def at(theta_LV: Tensor) -> Tensor:
        return risk(torch.einsum("...lv,vde->...lde", theta_LV, basis_VDD))

    scale = float(given[0].abs().max())
    given_KLV = torch.einsum("klde,vde->klv", torch.stack(list(given)), basis_VDD)
    noise_KLV = torch.from_numpy(rng.standard_normal((starts, len(given[0]), len(basis_VDD))))
    noise_KLV = noise_KLV * torch.from_numpy(rng.uniform(0.2, 1.5, (starts, 1, 1))) * scale
    end_KLV = descend(at, torch.cat([given_KLV, noise_KLV]))
    risk_K = at(end_KLV)
    best_LV, gain = polish(at, end_KLV[risk_K.argmin()])
    A_LDD = torch.einsum("lv,vde->lde", best_LV, basis_VDD)
    return Optimum(A_LDD, at(best_LV).item(), gain, float(risk_K.max() - risk_K.min()))


def descend(risk: Risk, start_KLV: Tensor) -> Tensor:
    def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
        theta_KLV = torch.from_numpy(theta.reshape(start_KLV.shape)).requires_grad_()
        total = risk(theta_KLV).sum()
        return total.item(), torch.autograd.grad(total, theta_KLV)[0].numpy().ravel()

    options = {"maxiter": 3000, "ftol": 1e-13, "gtol": 1e-9, "maxcor": 30}
    run = minimize(objective, start_KLV.numpy().ravel(), jac=True, method="L-BFGS-B", options=options)
    return torch.from_numpy(run.x.reshape(start_KLV.shape))


def polish(risk: Risk, theta_LV: Tensor) -> tuple[Tensor, float]:
    """Newton steps while they shrink the gradient, and what one more could gain.

    |gradient|^2 / (2 least Hessian eigenvalue); infinite where that is not positive: nothing is known there.
    """
    gradient_LV = _gradient(risk, theta_LV)
    while True:
        hessian_VV = _hessian(risk, theta_LV)
        step_V = torch.linalg.lstsq(hessian_VV, gradient_LV.flatten(), driver="gelsd").solution
        after_LV = theta_LV - step_V.reshape(theta_LV.shape)
        gradient_after_LV = _gradient(risk, after_LV)
        if not gradient_after_LV.norm() < 0.5 * gradient_LV.norm():
            curvature = float(torch.linalg.eigvalsh(hessian_VV)[0])
            gain = float(gradient_LV.square().sum()) / (2 * curvature) if curvature > 0 else float("inf")
            return theta_LV, gain
        theta_LV, gradient_LV = after_LV, gradient_after_LV


def _gradient(risk: Risk, theta_LV: Tensor) -> Tensor:
    variable_LV = theta_LV.clone().requires_grad_()
    return torch.autograd.grad(risk(variable_LV), variable_LV)[0]


def _hessian(risk: Risk, theta_LV: Tensor) -> Tensor:
    """Copy v of theta is differentiated once more along its own coordinate v, all copies at once."""
    V = theta_LV.numel()
    theta_VLV = theta_LV.repeat(V, 1, 1).requires_grad_()
    (slope_VLV,) = torch.autograd.grad(risk(theta_VLV).sum(), theta_VLV, create_graph=True)
    return torch.autograd.grad(slope_VLV.flatten(1).diagonal().sum(), theta_VLV)[0].flatten(1)


def basis(family: str, dim: int) -> Tensor:
    """Orthonormal basis (V, D, D) of the matrices of a family."""
    units_DDDD = torch.eye(dim * dim, dtype=torch.float64).reshape(dim, dim, dim, dim)
    diagonal_VDD = units_DDDD[range(dim), range(dim)]
    if family == "diagonal":
        return diagonal_VDD
    if family == "free":
        return units_DDDD.flatten(0, 1)
    rows, columns = torch.tril_indices(dim, dim, -1)
    pairs_VDD = (units_DDDD[rows, columns] + units_DDDD[columns, rows]) / 2**0.5
    return torch.cat([diagonal_VDD, pairs_VDD])
