"""lds, section 5: "PCG collapses to GD when covariates belong to R", in harmony with Theorem 4.1's step.

At s = 1, H = h and g are numbers. From w = 0 one step of conjugate gradients, with any preconditioner and
first direction, ends at g / h, the least squares solution, and so does the second; a gradient step of (14)
ends at eta g. They are equal where eta h = 1, and h varies from sequence to sequence: PCG is a gradient step
whose size is chosen anew, by line search, for each.

B sequences.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from icl.algorithms import ConjugateGradient, LeastSquares
from icl.checks.lds.support import eq14
from icl.checks.lds.support.pcg_distances import median_interval
from icl.checks.lds.support.population import Population, require_systems
from icl.checks.lds.support.sequences import Sequences
from icl.checks.numbers import finding, sampled, tried
from icl.checks.sequential import ALPHA
from icl.checks.verdict import Control, Finding
from icl.random import generator
from icl.tasks.dynamical_system import gram_prompts
from icl.theory.quadratic import EPSILON

SAME = 0.02  # of (14)'s prediction, as in the figures


@dataclass(eq=False)
class OneDimension(Sequences):
    """Settings: setting, length T, dim, seed, simulated sequences (`samples`)."""

    reference = "Section 5, last sentence; Theorem 4.1"
    claim = (
        "On AR(1) tokens the steps of preconditioned conjugate gradients are the plain gradient step of "
        "Theorem 4.1."
    )

    samples: int = 4000

    def __post_init__(self) -> None:
        super().__post_init__()
        self.law = self.law_at(1)
        require_systems(self.samples, self.length)

    def measure(self) -> Finding:
        eta = eq14.constant(Population(self.law, self.samples, self.seed).moments)
        prompt = gram_prompts(self.law.sequences([generator(self.seed, "eval")], self.samples), 1)
        h_B, g_B = prompt.gram_RBPP[0, :, 0, 0], prompt.gram_RBPP[0, :, 0, 1]
        x_B = prompt.query_RBP[0, :, 0]
        step_B = eta * g_B * x_B
        preconditioner, direction = torch.full((1, 1), 3.0).double(), torch.full((1,), -0.7).double()
        steps = [ConjugateGradient(1), ConjugateGradient(2), ConjugateGradient(2, preconditioner, direction)]
        answers = [method.predict(prompt)[0] for method in steps]
        squares_B = LeastSquares(self.law.context).predict(prompt)[0]
        off_B = ((answers[-1] - step_B) / step_B).abs()
        low, high = median_interval(off_B, ALPHA / 2)
        median = float(off_B.median())
        size_B = squares_B.abs()
        line_B = g_B / h_B * x_B
        line = float(((answers[-1] - line_B).abs() / size_B).max())
        return finding(
            [
                sampled(median_difference=median)
                .means(
                    "median over sequences of the difference of PCG from the gradient step of (14), relative"
                )
                .at_most(
                    SAME, "equal predictions; 99.9 % interval", half_width=max(high - median, median - low)
                ),
                tried(
                    least_squares_error=max(
                        float(((one - squares_B).abs() / size_B).max()) for one in answers
                    )
                )
                .means("largest difference of one and two steps from least squares, relative")
                .at_most(EPSILON * 64, "rounding of some 20 operations"),
                sampled(
                    quartiles_of_step=torch.quantile(
                        eta * h_B, torch.tensor([0.25, 0.5, 0.75]).double()
                    ).tolist()
                ).means("quartiles of eta h, 1 where the steps are equal"),
            ],
            Control(
                "the difference of PCG from a gradient step of size 1 / h, by line search",
                line,
                line <= EPSILON * 64,
            ),
            remarks=[
                "In one dimension a step of PCG is a gradient step with exact line search, of size 1 / h: "
                "least squares, whatever the preconditioner. The gradient step of Theorem 4.1 has one size "
                f"for all sequences; half of the predictions differ by more than {median:.2g} of it."
            ],
        )
