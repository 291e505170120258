"""giannou, beside (B.9): "0 <= delta/(1 - delta) - lambda <= delta + lambda", delta = |Delta|_{Hess g}.

Delta is a damped Newton step with an error, -Hess g^{-1} grad g / (1 + lambda) + eps. Without one, delta =
lambda / (1 + lambda) and the middle is zero. B problems, D covariates.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from icl.checks.giannou.support.inexact_newton import decrement, largest_error
from icl.checks.giannou.support.logistic_rounding import TWO_WAYS, step_off
from icl.checks.giannou.support.problems import LogisticProblems
from icl.checks.numbers import finding, tried
from icl.checks.settings import integer
from icl.checks.verdict import Control, Finding
from icl.random import generator
from icl.theory.logistic import damped_newton
from icl.theory.quadratic import EPSILON

DISTANCES = (0.0, 1e-3, 1e-2, 1e-1)  # of the first points from the minimum
PHASE_TWO = 1 / 6
REMARKS = [
    "Both sides fail with errors. Against the step, an error makes delta smaller than lambda / (1 + lambda), "
    "and the middle is negative. At the minimum lambda is 0 and delta = |eps|_{Hess g} > 0, so that the "
    "middle, delta / (1 - delta), exceeds delta.",
    "The proof needs a bound of |G_t| only, which is at most the larger of delta + lambda and |delta / (1 - "
    "delta) - lambda|. For delta <= 1/5, as there, both are at most (5/4) delta + lambda: the constants of "
    "Theorem 5.4 change, its statement does not (check=giannou/theorem5_4).",
]


@dataclass(eq=False)
class EquationB9(LogisticProblems):
    """Settings: of LogisticProblems, and number of problems (`samples`)."""

    samples: int = integer(50, 1, 1000)

    reference = "Appendix B.2, the display before the bound of (B.9)"
    claim = (
        "A damped Newton step with an error has 0 <= delta/(1 - delta) - lambda <= delta + lambda, delta its "
        "length in the norm of Hess g and lambda the decrement of g."
    )

    def measure(self) -> Finding:
        rng = generator(self.seed, "check")
        loss = self.losses(rng, self.samples)
        least_BD = damped_newton(loss, torch.zeros(self.samples, self.dim).double(), tolerance=1e-11).x_BD
        away_BD = torch.from_numpy(rng.standard_normal((self.samples, self.dim)))
        away_BD = away_BD / away_BD.norm(dim=1, keepdim=True)
        left, right, repaired, exact_left, compared = [], [], [], [], 0.0
        for distance in DISTANCES:
            x_BD = least_BD + distance * away_BD
            compared = max(compared, step_off(loss, x_BD)) if distance else compared
            lambda_B, move_BD = decrement(loss, x_BD), loss.damped_move(x_BD)
            error_B = largest_error(loss.mu, x_BD)
            second_B = lambda_B < PHASE_TWO
            along_BD = move_BD / move_BD.norm(dim=1, keepdim=True).clamp_min(1e-300)
            for error_BD in (0 * away_BD, away_BD, -along_BD):
                delta_B = self._length(loss.hessian(x_BD), move_BD + error_B[:, None] * error_BD)
                middle_B = (delta_B / (1 - delta_B) - lambda_B)[second_B]
                bound_B = (delta_B + lambda_B)[second_B]
                allowed_B = (1.25 * delta_B + lambda_B)[second_B]
                if not error_BD.any():
                    exact_left += (middle_B.abs() / (lambda_B[second_B] + 1e-12)).tolist() if distance else []
                    control = lambda_B[second_B].max() / 100 if distance else torch.zeros(())
                    continue
                left += middle_B.tolist()
                right += (middle_B - bound_B).tolist()
                repaired += (torch.maximum(middle_B.abs(), bound_B) / allowed_B).tolist()
        rounding = 1e3 * EPSILON / loss.mu
        least = min(left)
        return finding(
            [
                tried(left=-least)
                .means("largest lambda - delta/(1 - delta), over steps with errors in phase two")
                .at_most(rounding, "the claim's left side, and rounding")
                .provided(
                    tried(exact_off=max(exact_left))
                    .means("largest |delta/(1 - delta) - lambda| of exact steps, over lambda")
                    .at_most(1e-6, "rounding, as large as 1 / mu makes it", otherwise="undecided"),
                    tried(repaired=max(repaired))
                    .means("largest bound of |G_t| by (B.9)'s terms, over (5/4) delta + lambda")
                    .at_most(1.0 + 1e-9, "delta / (1 - delta) <= (5/4) delta", otherwise="undecided"),
                    tried(step_off=compared)
                    .means(
                        "largest difference of a Newton step computed in two ways, over its rounding error"
                    )
                    .at_most(1.0, TWO_WAYS, otherwise="undecided"),
                ),
                tried(right=max(right)).means(
                    "largest delta/(1 - delta) - lambda beyond delta + lambda, over steps with errors"
                ),
            ],
            Control(
                "the same difference for exact steps with 1.01 lambda for lambda",
                float(control),
                float(control) > rounding,
            ),
            notes=["Errors are the proof's largest, along a random direction and against the step."],
            remarks=REMARKS,
        )

    def _length(self, hessian_BDD: Tensor, step_BD: Tensor) -> Tensor:
        """|step| in the norm of Hess g = Hess f / (4 mu)."""
        square_B = (step_BD[:, None] @ hessian_BDD @ step_BD[..., None])[:, 0, 0]
        return (square_B / (4 * self.mu)).clamp_min(0).sqrt()
