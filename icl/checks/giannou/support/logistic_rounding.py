"""Rounding of the regularised logistic loss and its damped steps in float64, for points with |a_i| <= 1.

A margin's rounding is D |x|, p moves by at most a quarter of it and p (1 - p) by a tenth; sums over N points
round N terms. All bounds are in units of 2^-52, to first order. B problems, N points, D covariates.
"""

from __future__ import annotations

import torch
from torch import Tensor

from icl.theory.logistic import LogisticLoss
from icl.theory.quadratic import EPSILON

COMPARED = 256  # problems whose steps are taken in two ways
TWO_WAYS = "rounding, of the step in two ways"  # source of the bound 1 on step_off


def value_rounding(loss: LogisticLoss, x_BD: Tensor) -> Tensor:
    """Return the rounding of f."""
    N, D = loss.A_BND.shape[1:]
    norm_B = x_BD.norm(dim=-1)
    return EPSILON * ((N + 4) * (1 + norm_B) + D * norm_B + (D + 2) * loss.mu * norm_B.square())


def gradient_rounding(loss: LogisticLoss, x_BD: Tensor) -> Tensor:
    """Return the rounding of |grad f|."""
    N, D = loss.A_BND.shape[1:]
    norm_B = x_BD.norm(dim=-1)
    return EPSILON * (N + 8 + (D / 4 + 3 * loss.mu) * norm_B)


def direction_rounding(loss: LogisticLoss, x_BD: Tensor, direction_B: Tensor) -> Tensor:
    """Return the rounding of H^{-1} grad f, of norm `direction_B`: of grad f, H and Cholesky's solution."""
    return _residual(loss, x_BD, direction_B) / _least_curvature(loss, x_BD)


def decrement_rounding(loss: LogisticLoss, x_BD: Tensor, direction_B: Tensor) -> Tensor:
    """Return the rounding of lambda_f = |H^{1/2} H^{-1} grad f|."""
    return _residual(loss, x_BD, direction_B) / _least_curvature(loss, x_BD).sqrt()


def share_of_printed_bound(loss: LogisticLoss, x_BD: Tensor) -> float:
    """Return the rounding of lambda_f as a share of (1 + mu |x|) / (2 sqrt(mu)), the largest over
    problems."""
    direction_BD, _ = loss.newton_direction(x_BD)
    lambda_B = decrement_rounding(loss, x_BD, direction_BD.norm(dim=1))
    return float((lambda_B * 2 * loss.mu**0.5 / (1 + loss.mu * x_BD.norm(dim=1))).max())


def _residual(loss: LogisticLoss, x_BD: Tensor, direction_B: Tensor) -> Tensor:
    N, D = loss.A_BND.shape[1:]
    hessian_B = N + 8 + D / 10 * x_BD.norm(dim=-1) + 4 * D * (D + 1) * (loss.mu + 0.25)
    return gradient_rounding(loss, x_BD) + EPSILON * hessian_B * direction_B


def _least_curvature(loss: LogisticLoss, x_BD: Tensor) -> Tensor:
    return torch.linalg.eigvalsh(loss.hessian(x_BD))[:, 0].clamp_min(loss.mu)


def step_off(loss: LogisticLoss, x_BD: Tensor) -> float:
    """Return the error of the damped step x - (Hess g)^{-1} grad g / (1 + lambda_g) over its rounding.

    g = f / (4 mu) is differentiated by autograd from its value alone; the largest share over problems.
    """
    few = LogisticLoss(loss.A_BND[:COMPARED], loss.y_BN[:COMPARED], loss.mu)
    x_BD = x_BD[:COMPARED].clone().requires_grad_()
    value_B = few.value(x_BD) / (4 * loss.mu)
    (gradient_BD,) = torch.autograd.grad(value_B.sum(), x_BD, create_graph=True)
    rows = [
        torch.autograd.grad(gradient_BD[:, j].sum(), x_BD, retain_graph=True)[0] for j in range(x_BD.shape[1])
    ]
    gradient_BD, hessian_BDD, x_BD = gradient_BD.detach(), torch.stack(rows, 1), x_BD.detach()
    direction_BD = torch.linalg.solve(hessian_BDD, gradient_BD[..., None])[..., 0]
    lambda_B = (gradient_BD * direction_BD).sum(-1).clamp_min(0).sqrt()
    expected_BD = x_BD - direction_BD / (1 + lambda_B)[:, None]
    direction_B = direction_BD.norm(dim=-1)
    damping_B = decrement_rounding(few, x_BD, direction_B) / (2 * loss.mu**0.5) / (1 + lambda_B)
    rounding_B = 2 * (direction_rounding(few, x_BD, direction_B) + damping_B * direction_B) / (1 + lambda_B)
    off_B = (few.damped_step(x_BD) - expected_BD).norm(dim=-1)
    share_B = off_B / (rounding_B + 4 * EPSILON * (x_BD.norm(dim=-1) + direction_B))
    return float(torch.nan_to_num(share_B, nan=torch.inf).max())
