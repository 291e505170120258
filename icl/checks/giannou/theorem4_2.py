"""giannou, Theorem 4.2: least squares by T steps of Newton's iteration in 3 + T linear attention layers."""

from __future__ import annotations

from dataclasses import dataclass

from icl.checks.giannou.support.iteration import Regressions, compare_with_iteration
from icl.checks.verdict import Finding

REMARKS = [
    "The operations described are right, the listings of weights are not: a Newton layer's key must read "
    "block 2 (R) and not 1, the first output layer's key block 4 (A^T) and its query block 1 (X_T), not 3 "
    "and 3, and the last layer's values row 4d+3, not the row of y.",
    "H_1 is printed as H_0 minus [-I; -I; ..]: the second head is added, and takes the identity away.",
    "X_0 = epsilon A^T A leaves I - X_0 R = I - epsilon R^2, whose eigenvalues spread as kappa(A)^4. X_0 = "
    "epsilon I with epsilon < 2 / lambda_max(R), which block 1 allows as well, would spread them as "
    "kappa(A)^2 and halve the steps before convergence is quadratic.",
]


@dataclass(eq=False)
class Theorem4_2(Regressions):
    """Settings: sizes, steps T, condition of A (or A itself as `design`), prompts (`samples`), seed."""

    reference = "Theorem 4.2; Appendix A.2"
    claim = (
        "3 + T linear attention layers of two heads and width 4d + 3 answer a_test^T X_T A^T y, with X_T "
        "after T steps of Newton's iteration on A^T A."
    )

    def measure(self) -> Finding:
        return compare_with_iteration(self.regressions(0.0), self.steps, REMARKS)
