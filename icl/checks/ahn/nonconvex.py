"""ahn, section 2: the risk of one layer is not convex in (P, Q).

(P, Q) and (-P, -Q) predict the same; halfway between them nothing is predicted, and the risk is tr(Sigma).
At eq. (6) the mean of the two risks is less. In P alone, and in Q alone, the risk is convex: a square of
what is linear.

D covariates, N = `context` tokens, P = D + 1 token width.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from icl.checks.ahn.support.settings import PromptSettings
from icl.checks.numbers import exact, finding, tried
from icl.checks.rounding import ROUNDING
from icl.checks.settings import integer
from icl.checks.verdict import Control, Finding
from icl.random import generator
from icl.theory.closed_forms import theorem1_preconditioner, theorem1_risk
from icl.theory.quadratic import QuadraticRisk

PAIRS = 32
SOURCE = "rounding: 64 eps times the number of entries of a token's outer product"


@dataclass(eq=False)
class Nonconvex(PromptSettings):
    """Settings: of the prompts."""

    dim: int = integer(5, 1, 32, "the fourth moments take (dim + 1)^4 numbers")

    reference = "Section 2, why the analysis is challenging, (i)"
    claim = "The population risk of a single layer is not convex in (P, Q)."

    def measure(self) -> Finding:
        law, P = self.law, self.dim + 1
        Sigma = law.Sigma_RDD[0] / law.Sigma_RDD[0].trace()  # risks have the unit of its trace
        self.risk = QuadraticRisk.linear_regression(Sigma, law.Sigma_w_RDD[0], self.context)
        P_PP, Q_PP = torch.zeros(2, P, P, dtype=torch.float64)
        P_PP[-1, -1], Q_PP[:-1, :-1] = 1, -theorem1_preconditioner(Sigma, self.context)
        found = float(self._violation(P_PP, Q_PP, -P_PP, -Q_PP))
        stated = 1 - float(theorem1_risk(Sigma, self.context))
        bound, alone = ROUNDING * P**2, self._in_one_alone(P_PP, Q_PP)
        return finding(
            [
                exact(violation=found)
                .means(
                    "risk halfway between (P, Q) and (-P, -Q) above the mean of their risks, over tr(Sigma)"
                )
                .compared_by("violation_error", "the closed form of the least risk")
                .above(bound, SOURCE, otherwise="undecided"),
                exact(violation_error=abs(found - stated))
                .means("difference of that violation from 1 minus the closed form of the least risk")
                .compared_by("violation_error", "exact moments of the prompts, and closed form")
                .at_most(bound, SOURCE),
                tried(violation_in_one_alone=alone).means(
                    "largest violation between points that differ in P alone or in Q alone"
                ),
            ],
            Control(
                "the largest violation, as a share of the risks, between random points that differ in P "
                "alone or "
                "in Q alone, where the risk is convex",
                alone,
                alone <= bound,
            ),
        )

    def _violation(self, *given: Tensor) -> Tensor:
        P_PP, Q_PP, other_P_PP, other_Q_PP = given
        middle = self._at((P_PP + other_P_PP) / 2, (Q_PP + other_Q_PP) / 2)
        return middle - (self._at(P_PP, Q_PP) + self._at(other_P_PP, other_Q_PP)) / 2

    def _at(self, P_PP: Tensor, Q_PP: Tensor) -> Tensor:
        return self.risk.value_of_layer(P_PP[None], Q_PP[None])

    def _in_one_alone(self, P_PP: Tensor, Q_PP: Tensor) -> float:
        """Return the largest over random pairs of size like eq. (6), as a share of their risks."""
        rng, found = generator(self.seed, "control"), []
        for _ in range(PAIRS):
            first_PP, second_PP = torch.from_numpy(rng.standard_normal((2, *P_PP.shape)))
            moved = first_PP * Q_PP.norm(), second_PP * Q_PP.norm()
            in_Q = self._violation(P_PP, moved[0], P_PP, moved[1]) / self._at(P_PP, moved[0])
            in_P = self._violation(first_PP, Q_PP, second_PP, Q_PP) / self._at(first_PP, Q_PP)
            found += [float(in_Q), float(in_P)]
        return max(found)
