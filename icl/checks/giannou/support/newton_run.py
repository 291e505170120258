"""Runs of constructed Newton steps, and how far from the minimum they end. B problems, D covariates."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from icl.checks.giannou.support.logistic_rounding import direction_rounding
from icl.checks.giannou.support.mutants import or_infinite, with_layer
from icl.checks.giannou.support.step_error import Trajectory
from icl.models.giannou.columns import ColumnStack
from icl.theory.logistic import LogisticLoss

TOLERANCE = 1e-12  # of the gradient at the minimum that distances are from


@dataclass(frozen=True)
class RunFromZero:
    """The largest error of a step; at the end, the largest and the least distance to the minimum, the largest
    decrement lambda of f / (4 mu), and the largest distance as a share of what lambda allows."""

    eps: float
    distance: float
    least_distance: float
    decrement: float
    distance_over_certificate: float


def run_from_zero(step: ColumnStack, loss: LogisticLoss, optimum_BD: Tensor, steps: int) -> RunFromZero:
    """Take so many steps from x = 0; at least one that diverges makes every number but one infinite."""
    its = Trajectory.of(step, loss.A_BND, loss.y_BN, torch.zeros_like(optimum_BD), steps)
    end_BD = torch.nan_to_num(its.x_TBD[-1], nan=torch.inf)
    distance_B = (end_BD - optimum_BD).norm(dim=-1)
    if not bool(torch.isfinite(distance_B).all()):
        return RunFromZero(math.inf, math.inf, float(distance_B.min()), math.inf, 0.0)
    direction_BD, lambda_f_B = loss.newton_direction(end_BD)
    lambda_B = lambda_f_B / (2 * loss.mu**0.5)
    rounding_B = direction_rounding(loss, end_BD, direction_BD.norm(dim=-1)) + TOLERANCE / loss.mu
    certificate_B = torch.where(lambda_B < 1, 2 * lambda_B / (1 - lambda_B) + rounding_B, torch.inf)
    return RunFromZero(
        or_infinite(float(its.step_errors(loss).max())),
        float(distance_B.max()),
        float(distance_B.min()),
        float(lambda_B.max()),
        float((distance_B / certificate_B).max()),
    )


def without_penalty(step: ColumnStack, inversion: int) -> ColumnStack:
    """Return the stack without the head that adds mu x to the gradient: the third of layer 2k + 7."""
    number = 2 * inversion + 6
    layer = step.layers[number]
    return with_layer(step, number, replace(layer, heads=layer.heads[:2]))
