"""Bounds from both sides on |x| after a damped Newton step of the regularised logistic loss, from |x| = r,
whatever the problem (|a_i| <= 1). They tend to r - 2.

With rho = grad f - H x, of norm at most 1 (every |p + p (1 - p) m| <= 1, m the margin), a step is x' = (1 -
eta) x - eta H^{-1} rho with |H^{-1} rho| <= 1/mu, and lambda_f = |H^{1/2} x + H^{-1/2} rho| has
(r - 1/mu)^+ <= lambda_f / sqrt(mu) <= r + 1/mu + sqrt(BEND / mu), as x^T H x <= mu r^2 + max p (1 - p) m^2.
eta = 2 / (2 + lambda_f / sqrt(mu)). B problems, D covariates.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from scipy.optimize import brentq
from torch import Tensor

from icl.checks.giannou.support.logistic_rounding import TWO_WAYS, direction_rounding, step_off
from icl.checks.numbers import Numbers, exact, tried
from icl.theory.logistic import LogisticLoss
from icl.theory.quadratic import EPSILON

OF_CONSTANT = "bounds on one step from |x| <= C"


def numbers_of_bounds(
    loss: LogisticLoss, x_BD: Tensor, points: Iterable[Tensor], constant: float | None, otherwise: str
) -> list[Numbers]:
    """Compare the step at x and the bounds at all points, for errors of norm mu^2, with other ways to
    them."""
    outside = max(outside_bounds(loss, at_BD) for at_BD in points)
    numbers = [
        tried(step_off=step_off(loss, x_BD))
        .means("largest difference of a Newton step computed in two ways, over its rounding error")
        .at_most(1.0, TWO_WAYS, otherwise=otherwise),
        tried(outside_bounds=outside)
        .means("largest distance of a step from its proved bounds, over its rounding error")
        .at_most(1.0, "rounding of a step", otherwise=otherwise),
        exact(bend_off=bend_off())
        .means("difference of the largest bend of the logistic function from its value on a grid")
        .compared_by("bend_off", "root of m tanh(m / 2) = 2, and grid")
        .at_most(1e-8, "the grid's spacing, 1e-4, squared", otherwise=otherwise),
    ]
    if constant is not None:
        off = (
            exact(constant_off=constant_off(loss.mu, loss.mu**2, constant))
            .means("relative difference of the constant C from its value by another way")
            .compared_by("constant_off", "closed form of C, and bounds on one step from |x| <= C")
        )
        numbers.append(off.at_most(16 * EPSILON, "rounding: 16 * 2^-52", otherwise=otherwise))
    return numbers


def largest_bend() -> float:
    """Return max p (1 - p) m^2 = m^2 / (4 cosh(m/2)^2), where m tanh(m/2) = 2."""
    m = float(brentq(lambda m: m * math.tanh(m / 2) - 2, 1.0, 4.0, xtol=1e-15))
    return (m / math.cosh(m / 2)) ** 2 / 4


BEND = largest_bend()


def growth_bounds(mu: float, r: Tensor) -> tuple[Tensor, Tensor]:
    """Return bounds of |x'| - |x| from below and above. eta is least where lambda_f is largest."""
    least = 2 / (2 + r + 1 / mu + math.sqrt(BEND / mu))
    most = 2 / (2 + (r - 1 / mu).clamp_min(0))
    high = torch.where(r >= 1 / mu, least * (1 / mu - r), most * (1 / mu - r))
    return -most * (r + 1 / mu), high


def constant_of(mu: float, error: float) -> float | None:
    """Return C, None where error >= 2: with errors of that norm |x'| <= |x| from C on and |x'| <= C below.

    It is where the upper bound on |x'| meets |x|, error = 2 (C - 1/mu) / (2 + C + 1/mu + sqrt(BEND / mu)).
    Below C the bound is at most 1/mu + error up to |x| = 1/mu, and rises with |x| from there on.
    """
    half = error / 2
    if half >= 1:
        return None
    return (1 / mu + half * (2 + 1 / mu + math.sqrt(BEND / mu))) / (1 - half)


def constant_off(mu: float, error: float, constant: float) -> float:
    """Return |max |x'| / C - 1| by the bound itself, over |x| from 0 to C."""
    r = constant * torch.linspace(0, 1, 4001, dtype=torch.float64)
    return abs(float((r + growth_bounds(mu, r)[1] + error).max()) / constant - 1)


def bend_off() -> float:
    """Compare BEND with the largest p (1 - p) m^2 on a grid of margins 1e-4 apart."""
    m = torch.arange(0.0, 10.0, 1e-4, dtype=torch.float64)
    return abs(float((torch.sigmoid(m) * torch.sigmoid(-m) * m.square()).max()) - BEND)


def beyond(mu: float, error: float) -> float:
    """Return |x| from which an outward error of norm error > 2 lengthens x in every step that follows.

    |x'| - |x| >= error - 2 (r + 1/mu) / (2 + r - 1/mu) for r >= 1/mu; twice the root, to be well inside.
    """
    if error <= 2:
        return math.inf
    return 2 * max(1 / mu, (2 / mu - error * (2 - 1 / mu)) / (error - 2)) + 1


def growth(loss: LogisticLoss, x_BD: Tensor, share: float = 1.0) -> tuple[Tensor, Tensor]:
    """Return |x'| - |x| after that share of a step, and what rounding can make of it.

    It is s (2 x + s) / (|x + s| + |x|), s the step: nothing cancels at |x|'s size.
    """
    step_BD = share * loss.damped_move(x_BD)
    end_B, start_B, step_B = ((x_BD + step_BD).norm(dim=1), x_BD.norm(dim=1), step_BD.norm(dim=1))
    growth_B = (step_BD * (2 * x_BD + step_BD)).sum(-1) / (end_B + start_B)
    direction_BD, lambda_B = loss.newton_direction(x_BD)
    scaled_B = 2 * loss.mu**0.5 / (2 * loss.mu**0.5 + lambda_B)
    moved_B = scaled_B * direction_rounding(loss, x_BD, direction_BD.norm(dim=1))
    return growth_B, moved_B + EPSILON * (x_BD.shape[1] + 8) * step_B


def outside_bounds(loss: LogisticLoss, x_BD: Tensor, share: float = 1.0) -> float:
    """Return how far |x'| - |x| is outside its bounds, in units of its rounding: at most 1."""
    growth_B, rounding_B = growth(loss, x_BD, share)
    low_B, high_B = growth_bounds(loss.mu, x_BD.norm(dim=1))
    off_B = torch.maximum(growth_B - high_B, low_B - growth_B) / rounding_B.clamp_min(EPSILON)
    return float(torch.nan_to_num(off_B, nan=torch.inf).clamp_min(0).max())


def units(x_BD: Tensor) -> Tensor:
    """Scale every row to norm 1."""
    return torch.nn.functional.normalize(x_BD, dim=1)
