"""ahn, section 3, the second property of eq. (6): "tr(Sigma)/n acts as a regularizer. It becomes more
significant when n is small and variance of the x's is high."

The two terms of (6) are (n + 1)/n Sigma and tr(Sigma)/n I. Their ratio is tr(Sigma) / ((n + 1) lambda): it
rises as n falls, but Sigma -> c Sigma scales both, and the risk with and without the trace term as well.
What raises it is not variance but its spread over directions.

D covariates, N = `context` tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from icl.checks.ahn.support.linear_layer import risk_over_tasks
from icl.checks.ahn.support.settings import PromptSettings
from icl.checks.numbers import exact, finding
from icl.checks.rounding import ROUNDING
from icl.checks.settings import integer
from icl.checks.task_rule import BY_TASKS
from icl.checks.verdict import Control, Finding
from icl.theory.closed_forms import theorem1_preconditioner
from icl.theory.expected_traces import sparse_a_risk

FACTOR = 4.0  # of the variance; of two, so that scaling does not round
SHARE = "the closed form tr(Sigma) / ((n + 1) lambda_max) of the share"
SOURCE = "rounding, 64 eps times the condition number of Sigma; a significance that grows is above it"


@dataclass(eq=False)
class TraceTerm(PromptSettings):
    """Settings: of the prompts."""

    dim: int = integer(5, 1, 64, "the risk's words take dim^3 operations each")

    reference = "Section 3, the second property of eq. (6)"
    claim = (
        "The regularizer tr(Sigma)/n in eq. (6) becomes more significant when n is small and when the "
        "variance of "
        "x is high."
    )

    def measure(self) -> Finding:
        Sigma, N = self.law.Sigma_RDD[0], self.context
        bound = ROUNDING * float(torch.linalg.cond(Sigma))
        by_variance, excess = self._growth((Sigma, N), (FACTOR * Sigma, N))
        by_context, excess_by_context = self._growth((Sigma, 2 * N), (Sigma, N))
        again = [
            self._saving(*after) / self._saving(*before) - 1
            for before, after in (((Sigma, N), (FACTOR * Sigma, N)), ((Sigma, 2 * N), (Sigma, N)))
        ]
        # what is saved is a difference of risks, of which rounding takes a larger share
        size = 1 / min(self._saving(Sigma, N), self._saving(Sigma, 2 * N), 1.0)
        return finding(
            [
                exact(growth_with_variance=by_variance)
                .means("growth of the trace term, as a share of the other, where Sigma becomes 4 Sigma")
                .also_by(SHARE, growth_with_variance=0.0, size=size)
                .above(bound, SOURCE),
                exact(growth_with_shorter_context=by_context)
                .means("growth of the trace term, as that share, from 2 n tokens to n")
                .also_by(SHARE, growth_with_shorter_context=N / (N + 1), size=size),
                exact(
                    excess_growth_with_variance=excess, excess_growth_with_shorter_context=excess_by_context
                )
                .means(
                    excess_growth_with_variance="growth of the risk that the trace term saves, relative, "
                    "likewise",
                    excess_growth_with_shorter_context="growth of the risk that it saves, from 2 n tokens "
                    "to n",
                )
                .also_by(
                    BY_TASKS,
                    excess_growth_with_variance=again[0],
                    excess_growth_with_shorter_context=again[1],
                    size=size,
                ),
            ],
            Control(
                "the same growth from 2 n tokens to n; that it is zero must be rejected",
                by_context,
                by_context > bound,
            ),
            remarks=[
                "The first half is true: the share is tr(Sigma) / ((n + 1) lambda_i) in the direction i. "
                "The second "
                "is false: Sigma -> c Sigma scales both terms of eq. (6), and the risks with and without "
                "the trace "
                "term. More variance in one direction raises the share in the others."
            ],
        )

    def _growth(self, before: tuple[Tensor, int], after: tuple[Tensor, int]) -> tuple[float, float]:
        """Return the relative growth of the trace term's share, and of the relative risk that it saves."""
        shares, savings = zip(*(self._significance(*at) for at in (before, after)), strict=True)
        return shares[1] / shares[0] - 1, savings[1] / savings[0] - 1

    def _significance(self, Sigma: Tensor, N: int) -> tuple[float, float]:
        inverse = torch.linalg.inv(theorem1_preconditioner(Sigma, N))
        without = (N + 1) / N * Sigma
        share = torch.linalg.matrix_norm(inverse - without, 2) / torch.linalg.matrix_norm(without, 2)
        Sigma_w = torch.eye(self.dim, dtype=torch.float64)
        risks = [sparse_a_risk(torch.linalg.inv(M)[None], Sigma, Sigma_w, N) for M in (inverse, without)]
        return float(share), float(risks[1] / risks[0] - 1)

    def _saving(self, Sigma: Tensor, N: int) -> float:
        """Return the relative risk that the trace term saves once more, given the task."""
        identity_DD = torch.eye(self.dim, dtype=torch.float64)
        matrices = theorem1_preconditioner(Sigma, N), torch.linalg.inv((N + 1) / N * Sigma)
        of_both = [risk_over_tasks(A_DD[None], Sigma, identity_DD, N) for A_DD in matrices]
        return of_both[1] / of_both[0] - 1
