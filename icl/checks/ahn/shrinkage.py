"""ahn, section 4.2: "in contrast to Theorem 1, there is no trade-off with statistical robustness" where w
~ N(0, Sigma^{-1}).

At L = 1 the risk on S is a quadratic in the scalar a of A = a Sigma^{-1}, and its least point is a = N/(N
+ D + 1): below 1, the step of descent that is exact for S = Sigma, by as much as eq. (6) shrinks at Sigma
= I. What Sigma_w = Sigma^{-1} removes is the difference between directions: the best matrix is a multiple
of Sigma^{-1} at every N.

D covariates, N = `context` tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from icl.checks.ahn.support.linear_layer import risk_over_tasks
from icl.checks.ahn.support.settings import PromptSettings
from icl.checks.numbers import exact, finding
from icl.checks.rounding import ROUNDING
from icl.checks.settings import integer
from icl.checks.task_rule import BY_TASKS
from icl.checks.verdict import Control, Finding
from icl.theory.closed_forms import theorem1_preconditioner
from icl.theory.expected_traces import sparse_a_risk
from icl.verdicts import ROUTE_ROUNDING

AXES = 8  # of Sigma along which the anisotropy is measured once more
SOURCE = "rounding, 64 eps times the condition number of Sigma; 0 would be no shrinkage"


@dataclass(eq=False)
class Shrinkage(PromptSettings):
    """Settings: of the prompts."""

    dim: int = integer(5, 1, 64, "the risk's words take dim^3 operations each")

    reference = "Section 4.2, after Theorem 3"
    claim = (
        "Where w ~ N(0, Sigma^-1) there is no trade-off with statistical robustness: the best layer of the "
        "set S is "
        "Sigma^-1, without shrinkage."
    )
    task_covariance = "inverse"

    def measure(self) -> Finding:
        Sigma, D, N = self.law.Sigma_RDD[0], self.dim, self.context
        inverse = self.law.Sigma_w_RDD[0]
        bound = ROUNDING * float(torch.linalg.cond(Sigma)) * D
        none, ahead, back = (sparse_a_risk(a * inverse[None], Sigma, inverse, N) for a in (0.0, 1.0, -1.0))
        best = float(-(ahead - back) / 2 / (ahead + back - 2 * none))
        low, up, down = (risk_over_tasks(a * inverse[None], Sigma, inverse, N) for a in (0.0, 1.0, -1.0))
        again, size = -(up - down) / 2 / (up + down - 2 * low), max(1.0, bound / ROUTE_ROUNDING)
        A_DD = theorem1_preconditioner(Sigma, N, inverse)
        anisotropy = float((A_DD @ Sigma - best * torch.eye(D, dtype=torch.float64)).abs().max())
        return finding(
            [
                exact(shrinkage=abs(1 - best))
                .means("difference of the best scalar a of A = a Sigma^-1 from 1")
                .also_by(BY_TASKS, shrinkage=abs(1 - again), size=size)
                .at_most(bound, SOURCE),
                exact(best=best, best_error=abs(best - N / (N + D + 1)))
                .means(
                    best="best scalar a of A = a Sigma^-1 at one layer",
                    best_error="difference of the best scalar from n / (n + d + 1)",
                )
                .also_by(BY_TASKS, best=again, best_error=abs(again - N / (N + D + 1)), size=size),
                exact(anisotropy=anisotropy)
                .means("largest entry of A Sigma - a I at the best matrix over all A")
                .also_by(
                    f"{BY_TASKS}, which is least at a Sigma^-1 along the axes of Sigma",
                    anisotropy=self._anisotropy_along_axes(again),
                    size=size,
                ),
            ],
            Control(
                "the difference of the best scalar from n / (n + 1), a shrinkage that does not depend on d",
                abs(best - N / (N + 1)),
                abs(best - N / (N + 1)) > bound,
            ),
            remarks=[
                f"The best scalar is n / (n + d + 1) = {N / (N + D + 1):.4g}: a shrinkage for few tokens "
                f"as that of "
                "eq. (6). What is absent is the difference between directions: at every n the best matrix "
                "is a "
                "multiple of Sigma^-1, where eq. (6) is not."
            ],
        )

    def _anisotropy_along_axes(self, best: float) -> float:
        """Return the largest distance from a Sigma^-1 at which the risk is least along an axis of Sigma, in
        units of that axis of Sigma^-1."""
        Sigma, inverse = self.law.Sigma_RDD[0], self.law.Sigma_w_RDD[0]
        eigenvalues_D, U_DD = torch.linalg.eigh(Sigma)
        off = []
        for axis in torch.linspace(0, self.dim - 1, min(self.dim, AXES)).long().tolist():
            M_DD = torch.outer(U_DD[:, axis], U_DD[:, axis]) / eigenvalues_D[axis]
            low, up, down = (
                risk_over_tasks((best * inverse + t * M_DD)[None], Sigma, inverse, self.context)
                for t in (0.0, 1.0, -1.0)
            )
            off.append(abs((up - down) / 2 / (up + down - 2 * low)))
        return max(off)
