"""Damped Newton steps with errors: decreases, decrements, lengths, and their rounding along the way.

B problems, N context, D covariates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from icl.checks.giannou.support.logistic_rounding import decrement_rounding, value_rounding
from icl.checks.giannou.support.one_step import growth, units
from icl.theory.logistic import LogisticLoss, damped_newton
from icl.theory.quadratic import EPSILON

MOST_STEPS = 10_000
SETTLED = 20  # steps that follow the last of phase one


@dataclass(frozen=True)
class RunWithErrors:
    """Measurements along the iterations, nan where a phase was not seen, and their rounding."""

    min_decrease_phase1: float
    min_decrease_exact: float
    max_ratio_phase2: float
    final_gap_over_eps: float
    steps_of_phase1: float
    steps_in_phase1: float
    steps_in_phase2: float
    rounding_of_decrease: float
    rounding_of_ratio: float
    rounding_of_gap: float


def run_with_errors(
    loss: LogisticLoss, x_BD: Tensor, steps: int | None, exaggerated: float, rng: np.random.Generator
) -> RunWithErrors:
    """Take so many steps from x, None: until every problem is in phase two and some more. Errors are
    `exaggerated` times the proof's."""
    mu = loss.mu
    drops, exact_drops, ratios = [np.inf], [np.inf], [0.0]
    lambda_B, last_first_phase = decrement(loss, x_BD), 0
    rounding_of_decrease = rounding_of_ratio = 0.0
    for t in range(MOST_STEPS if steps is None else steps):
        if steps is None and t == last_first_phase + SETTLED:
            break
        eps_B = largest_error(mu, x_BD)
        stepped_BD = loss.damped_step(x_BD)
        next_BD, next_lambda_B = _worst(loss, stepped_BD, lambda_B, exaggerated * eps_B, rng)
        g_B = loss.value(x_BD) / (4 * mu)
        drop_B, exact_B = g_B - loss.value(next_BD) / (4 * mu), g_B - loss.value(stepped_BD) / (4 * mu)
        first_B = lambda_B >= 1 / 6
        allowed_B = 3 * lambda_B**2 + constant_times_error(mu, eps_B)
        drops += drop_B[first_B].tolist()
        exact_drops += exact_B[lambda_B >= 1 / 4].tolist()
        ratios += (next_lambda_B / allowed_B)[~first_B].tolist()
        if bool(first_B.any()):
            last_first_phase = t + 1
            rounded_B = 2 * value_rounding(loss, x_BD)[first_B] / (4 * mu)
            rounding_of_decrease = max(rounding_of_decrease, float(rounded_B.max()))
        if not bool(first_B.all()):
            # of lambda' and of the lambda that it is compared with, whose own error counts less
            lambda_rounding_B = sum(
                decrement_rounding(loss, at_BD, 2 * its_B) / (2 * mu**0.5)
                for at_BD, its_B in ((x_BD, lambda_B), (next_BD, next_lambda_B))
            )
            rounding_of_ratio = max(rounding_of_ratio, float((lambda_rounding_B / allowed_B)[~first_B].max()))
        x_BD, lambda_B = next_BD, next_lambda_B
    least_BD = damped_newton(loss, torch.zeros_like(x_BD), tolerance=1e-11).x_BD
    gap_B = (loss.value(x_BD) - loss.value(least_BD)) / (4 * mu)
    eps_B = largest_error(mu, x_BD)
    settled = bool((lambda_B < 1 / 6).all())
    return RunWithErrors(
        min_decrease_phase1=min(drops) if len(drops) > 1 else float("nan"),
        min_decrease_exact=min(exact_drops) if len(exact_drops) > 1 else float("nan"),
        max_ratio_phase2=max(ratios) if len(ratios) > 1 else float("nan"),
        final_gap_over_eps=float((gap_B / eps_B).max()) if settled else float("nan"),
        steps_of_phase1=float(last_first_phase),
        steps_in_phase1=float(len(drops) - 1),
        steps_in_phase2=float(len(ratios) - 1),
        rounding_of_decrease=rounding_of_decrease,
        rounding_of_ratio=rounding_of_ratio,
        rounding_of_gap=float((2 * value_rounding(loss, x_BD) / (4 * mu) / eps_B).max()),
    )


def _worst(
    loss: LogisticLoss, x_BD: Tensor, lambda_B: Tensor, eps_B: Tensor, rng: np.random.Generator
) -> tuple[Tensor, Tensor]:
    """Return x + error with the worst of five errors, and its decrement."""
    gradient_BD = loss.gradient(x_BD)
    top_BD = torch.linalg.eigh(loss.hessian(x_BD)).eigenvectors[..., -1]
    drawn_BD = torch.from_numpy(rng.standard_normal(tuple(x_BD.shape)))
    tried_KBD = torch.stack([gradient_BD, top_BD, -top_BD, drawn_BD])
    tried_KBD = tried_KBD / tried_KBD.norm(dim=-1, keepdim=True).clamp_min(1e-300)
    moved_KBD = torch.cat([x_BD + eps_B[:, None] * tried_KBD, x_BD[None]])
    lambda_KB = torch.stack([decrement(loss, moved_BD) for moved_BD in moved_KBD])
    value_KB = torch.stack([loss.value(moved_BD) for moved_BD in moved_KBD])
    worst_B = torch.where(lambda_B >= 1 / 6, value_KB.argmax(0), lambda_KB.argmax(0))
    which = torch.arange(len(worst_B))
    return moved_KBD[worst_B, which], lambda_KB[worst_B, which]


def least_growth(loss: LogisticLoss, x_BD: Tensor, steps: int, error: float) -> tuple[float, float]:
    """Return the least |x'| - |x| over problems and steps, errors outward, and what rounding can make of
    it."""
    least, rounded = float("inf"), 0.0
    for _ in range(steps):
        growth_B, rounding_B = growth(loss, x_BD)
        least = min(least, float(growth_B.min()) + error)
        rounded = max(rounded, float(rounding_B.max()) + EPSILON * error)
        x_BD = loss.damped_step(x_BD)
        x_BD = x_BD + error * units(x_BD)
    return least, rounded


def largest_iterate(loss: LogisticLoss, start_BD: Tensor, steps: int, rng: np.random.Generator) -> float:
    """Return the largest |x_t|, t >= 1, over problems and errors of norm mu^2: outward, inward and random."""
    largest = 0.0
    for direction in ("outward", "inward", "random"):
        x_BD = start_BD
        for _ in range(steps):
            x_BD = loss.damped_step(x_BD)
            aim_BD = torch.from_numpy(rng.standard_normal(x_BD.shape)) if direction == "random" else x_BD
            x_BD = x_BD + (-1 if direction == "inward" else 1) * loss.mu**2 * units(aim_BD)
            largest = max(largest, float(x_BD.norm(dim=1).max()))
    return largest


def decrement(loss: LogisticLoss, x_BD: Tensor) -> Tensor:
    """Return lambda of g = f / (4 mu)."""
    return loss.newton_direction(x_BD)[1] / (2 * loss.mu**0.5)


def largest_error(mu: float, x_BD: Tensor) -> Tensor:
    """Return the proof's eps: min(.01, .04 mu / (1 + mu |x|))."""
    return (0.04 * mu / (1 + mu * x_BD.norm(dim=1))).clamp_max(0.01)


def constant_times_error(mu: float, eps_B: Tensor) -> Tensor:
    """Return C' eps, C' = sqrt((1 + mu)/(4 mu)) / (1 - e)^2."""
    e_B = eps_B * ((1 + mu) / (4 * mu)) ** 0.5
    return e_B / (1 - e_B) ** 2


def guaranteed_decrease(mu: float) -> float:
    """Return the least decrease of g for any problem: lambda^2/(1+lambda) - e lambda - w*(lambda/(1+lambda) +
    e).

    e bounds the error's local norm, eps sqrt((1/4 + mu)/(4 mu)), so |eps^T grad g| <= e lambda. As
    lambda <= (1 + mu |x|) / (2 mu), also eps <= .02 / lambda. Over a grid of lambda from 1/6.
    """
    x = np.geomspace(1 / 6, 1e6, 20_001)
    e = np.minimum(min(0.01, 0.04 * mu), 0.02 / x) * ((0.25 + mu) / (4 * mu)) ** 0.5
    delta = np.minimum(x / (1 + x) + e, 1.0)
    with np.errstate(divide="ignore"):
        return float((x**2 / (1 + x) - e * x + delta + np.log1p(-delta)).min())
