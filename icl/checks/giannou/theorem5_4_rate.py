"""giannou, Theorem 5.4: g - g* <= eps after C_1 + C_2 log log (1/eps) damped Newton steps with errors of eps.

From lambda < 1/6 on, u = 3 lambda has u' <= u^2 + 3 C' eps from below 1/2, and g - g* <= (3/5) lambda^2: log2
log2 (1/eps) + 2 steps suffice. Before that every step decreases g by .01. B problems, D covariates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from icl.checks.giannou.support.inexact_newton import decrement, largest_error
from icl.checks.giannou.support.logistic_rounding import TWO_WAYS, step_off
from icl.checks.giannou.support.one_step import units
from icl.checks.giannou.support.problems import LogisticProblems
from icl.checks.numbers import finding, tried
from icl.checks.settings import integer
from icl.checks.verdict import Control, Finding
from icl.random import generator
from icl.theory.logistic import LogisticLoss, damped_newton

ACCURACIES = (1e-3, 1e-5, 1e-7, 1e-9)
EXTRA = 2  # steps beyond log2 log2 (1/eps)
MOST = 20_000  # steps
REMARKS = [
    "C_2 = 1 with logarithms to the base 2, and C_1 is the number of steps of phase one, at most 100 (g(x_0) "
    "- g*), and 2. Remark C.1 calls it a constant: it is one in eps, but grows with the distance of x_0 and "
    "with 1/mu.",
    "Remark B.11 takes eps' = sqrt(eps) for a gap of eps. It is not needed: the gap ends below .6 (C' "
    "eps)^2.",
]


@dataclass(eq=False)
class Theorem5_4Rate(LogisticProblems):
    """Settings: of LogisticProblems, and number of problems (`samples`)."""

    samples: int = integer(16, 1, 1000)

    reference = "Theorem 5.4, Remarks B.11 and C.1"
    claim = (
        "Damped Newton with errors of at most eps has g - g* <= eps after at most log2 log2 (1/eps) + 2 "
        "steps from lambda < 1/6 on, and comes there in at most 100 (g(x_0) - g*) steps."
    )

    def measure(self) -> Finding:
        rng = generator(self.seed, "check")
        loss = self.losses(rng, self.samples)
        start_BD = units(torch.from_numpy(rng.standard_normal((self.samples, self.dim))))
        start_BD = start_BD * torch.from_numpy(10 ** rng.uniform(0, 1.5, (self.samples, 1)))
        least_BD = damped_newton(loss, torch.zeros_like(start_BD), tolerance=1e-12).x_BD
        first, second, linear = -math.inf, -math.inf, -math.inf
        steps = []
        for eps in ACCURACIES:
            allowed = math.log2(math.log2(1 / eps)) + EXTRA
            phase_B, total_B, phase_BD = steps_to(loss, start_BD, least_BD, eps)
            gap_B = (loss.value(start_BD) - loss.value(least_BD)) / (4 * self.mu)
            first = max(first, float((phase_B - 100 * gap_B).max()))
            steps.append(float((total_B - phase_B).max()))
            second = max(second, steps[-1] - allowed)
            linear = max(linear, float(half_steps(loss, phase_BD, least_BD, eps).max()) - allowed)
        return finding(
            [
                tried(excess=second)
                .means("largest number of steps of phase two beyond log2 log2 (1/eps) + 2, over problems")
                .at_most(0.0, "lambda' <= 3 lambda^2 + C' eps and (B.7)"),
                tried(phase1_excess=first)
                .means("largest number of steps of phase one beyond 100 (g(x_0) - g*), over problems")
                .at_most(0.0, "a decrease of .01 in every step"),
                tried(step_off=step_off(loss, start_BD))
                .means("largest difference of a Newton step computed in two ways, over its rounding error")
                .at_most(1.0, TWO_WAYS),
                tried(accuracies=list(ACCURACIES), steps=steps).means(
                    accuracies="accuracies eps", steps="largest numbers of steps of phase two, by accuracy"
                ),
            ],
            Control(
                "the first number for halves of exact damped steps, whose rate is linear",
                linear,
                linear > 0,
            ),
            notes=["Errors are the least of eps and of the proof's largest, away from the minimum."],
            remarks=REMARKS,
        )


def steps_to(loss: LogisticLoss, x_BD: Tensor, least_BD: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return after how many steps lambda < 1/6 and after how many g - g* <= eps for good, and x at the
    first."""
    count = len(x_BD)
    phase_B, total_B, phase_BD = torch.full((count,), -1.0), torch.full((count,), -1.0), x_BD.clone()
    for t in range(MOST):
        gap_B = (loss.value(x_BD) - loss.value(least_BD)) / (4 * loss.mu)
        arrives_B = (phase_B < 0) & (decrement(loss, x_BD) < 1 / 6)
        phase_B[arrives_B], phase_BD[arrives_B] = float(t), x_BD[arrives_B]
        total_B[gap_B > eps] = -1.0
        total_B[(total_B < 0) & (gap_B <= eps)] = float(t)
        if bool((phase_B >= 0).all() and (total_B >= 0).all()):
            return phase_B, torch.maximum(total_B, phase_B), phase_BD
        error_B1 = largest_error(loss.mu, x_BD).clamp_max(eps)[:, None]
        x_BD = loss.damped_step(x_BD)
        x_BD = x_BD + error_B1 * units(x_BD - least_BD)
    raise RuntimeError("damped Newton did not arrive")


def half_steps(loss: LogisticLoss, x_BD: Tensor, least_BD: Tensor, eps: float) -> Tensor:
    """Count halves of damped steps until g - g* <= eps, at most as many as decide."""
    total_B = torch.full((len(x_BD),), 50.0)
    for t in range(50):
        gap_B = (loss.value(x_BD) - loss.value(least_BD)) / (4 * loss.mu)
        total_B[(total_B == 50) & (gap_B <= eps)] = float(t)
        x_BD = x_BD + loss.damped_move(x_BD) / 2
    return total_B
