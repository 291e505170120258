"""Many descents at once: L-BFGS of every row on its own, all rows evaluated as one batch.

torch.optim's takes one function of everything it is given; here rows must not share curvature or step size.
K rows, V variables, H pairs of the history.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

HISTORY = 40
HALVINGS = 12
LAST = 0.1  # share of the iterations, in which the fall of a risk tells whether it still falls
SUFFICIENT = 1e-4  # of the decrease that the slope promises (Armijo)

Risk = Callable[[Tensor, Tensor], Tensor]  # theta (k, V) of rows `index` (k,) to their risks (k,)


class Descended(NamedTuple):
    """Rows after a descent, their risks, and those before the last tenth of the iterations."""

    theta_KV: Tensor
    risk_K: Tensor
    before_K: Tensor


def descend_each(
    risk: Risk, start_KV: Tensor, iterations: int, follow: Callable[[range], object] = iter
) -> Descended:
    """Return each row after the given number of iterations."""
    theta_KV, every = start_KV.clone(), torch.arange(len(start_KV))
    value_K, slope_KV = _with_gradient(risk, theta_KV, every)
    before_K, scale_K, pairs = value_K, torch.ones_like(value_K), list[tuple[Tensor, Tensor, Tensor]]()
    for iteration in follow(range(iterations)):  # type: ignore[attr-defined]
        if iteration <= (1 - LAST) * iterations:
            before_K = value_K
        direction_KV = _direction(slope_KV, pairs, scale_K)
        promised_K = (direction_KV * slope_KV).sum(1)
        up_K = promised_K >= 0
        direction_KV[up_K], promised_K[up_K] = -slope_KV[up_K], -slope_KV[up_K].square().sum(1)
        step_K = torch.ones_like(value_K) if pairs else 1 / slope_KV.norm(dim=1).clamp_min(1e-300)
        new_KV, new_value_K, new_slope_KV = theta_KV.clone(), value_K.clone(), slope_KV.clone()
        left = every
        for _ in range(HALVINGS):
            tried_KV = theta_KV[left] + step_K[left, None] * direction_KV[left]
            tried_K, tried_slope_KV = _with_gradient(risk, tried_KV, left)
            good = tried_K <= value_K[left] + SUFFICIENT * step_K[left] * promised_K[left]
            at = left[good]
            new_KV[at], new_value_K[at], new_slope_KV[at] = (
                tried_KV[good],
                tried_K[good],
                tried_slope_KV[good],
            )
            left = left[~good]  # of a NaN too
            if not len(left):
                break
            step_K[left] /= 2
        pairs = [*pairs, _pair(new_KV - theta_KV, new_slope_KV - slope_KV)][-HISTORY:]
        _, y_KV, rho_K = pairs[-1]  # the latest that counts
        scale_K = torch.where(rho_K > 0, 1 / (rho_K * y_KV.square().sum(1)), scale_K)
        theta_KV, value_K, slope_KV = new_KV, new_value_K, new_slope_KV
    return Descended(theta_KV, value_K, before_K)


def _with_gradient(risk: Risk, theta_KV: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
    theta_KV = theta_KV.detach().requires_grad_()
    value_K = risk(theta_KV, index)
    return value_K.detach(), torch.autograd.grad(value_K.sum(), theta_KV)[0]


def _pair(step_KV: Tensor, change_KV: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(s, y, 1 / <s, y>), the last 0 for rows whose pair says nothing of a positive curvature."""
    product_K = (step_KV * change_KV).sum(1)
    known_K = product_K > 1e-12 * step_KV.norm(dim=1) * change_KV.norm(dim=1)
    return step_KV, change_KV, torch.where(known_K, 1 / product_K, 0.0)


def _direction(slope_KV: Tensor, pairs: list[tuple[Tensor, Tensor, Tensor]], scale_K: Tensor) -> Tensor:
    """Return the two loops of L-BFGS (Nocedal and Wright, algorithm 7.4), row by row."""
    q_KV, alphas = slope_KV.clone(), []
    for s_KV, y_KV, rho_K in reversed(pairs):
        alpha_K = rho_K * (s_KV * q_KV).sum(1)
        q_KV = q_KV - alpha_K[:, None] * y_KV
        alphas.append(alpha_K)
    q_KV = q_KV * scale_K[:, None]
    for (s_KV, y_KV, rho_K), alpha_K in zip(pairs, reversed(alphas), strict=True):
        beta_K = rho_K * (y_KV * q_KV).sum(1)
        q_KV = q_KV + (alpha_K - beta_K)[:, None] * s_KV
    return -q_KV
