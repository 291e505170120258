"""giannou, Theorem 4.2: least squares by T steps of Newton's iteration in 3 + T linear attention layers."""

from __future__ import annotations

from dataclasses import dataclass

from icl.checks.giannou.support.iteration import Regressions, compare_with_iteration
from icl.checks.verdict import Finding

REMARKS = [
    "The operations are described correctly, but the listed weights are wrong: the key of a Newton layer "
    "must read block 2 (R), not 1; the key of the first output layer must read block 4 (A^T) and its "
    "query block 1 (X_T), not 3 and 3; and the values of the last layer must read row 4d+3, not the row "
    "of y.",
    "H_1 is printed as H_0 minus [-I; -I; ..]; the second head is added, and removes the identity.",
    "With X_0 = epsilon A^T A, I - X_0 R = I - epsilon R^2, whose eigenvalues spread as kappa(A)^4. X_0 = "
    "epsilon I with epsilon < 2 / lambda_max(R), which block 1 also allows, gives kappa(A)^2 and halves "
    "the number of steps before convergence is quadratic.",
]


@dataclass(eq=False)
class Theorem4_2(Regressions):
    """Settings: sizes, steps T, condition of A (or A itself as `design`), prompts (`samples`), seed."""

    reference = "Theorem 4.2; Appendix A.2"
    claim = (
        "3 + T layers of linear attention with two heads and width 4d + 3 predict a_test^T X_T A^T y, "
        "where X_T is the result of T steps of Newton's iteration for the inverse of A^T A."
    )

    def measure(self) -> Finding:
        return compare_with_iteration(self.regressions(0.0), self.steps, REMARKS)
