"""giannou, Remark 4.4: the construction of Theorem 4.2 with A^T A + mu I for A^T A."""

from __future__ import annotations

from dataclasses import dataclass

from icl.checks.giannou.support.iteration import Regressions, compare_with_iteration
from icl.checks.verdict import Finding
from icl.errors import real

REMARKS = [
    "The head that removes the identities also adds mu I, so no further layer, head or row is needed. The "
    "iteration starts from epsilon (A^T A + mu I) with epsilon < 2 / (lambda_max(A^T A) + mu)^2."
]


@dataclass(eq=False)
class Ridge(Regressions):
    """Settings: those of Theorem 4.2 and the ridge `mu` > 0."""

    reference = "Remark 4.4"
    claim = (
        "The construction of Theorem 4.2 extends to ridge regression: the layers compute the inverse of "
        "A^T A + mu I by Newton's iteration."
    )

    mu: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        self.mu = real("check.mu", self.mu, 0, open_low=True)

    def measure(self) -> Finding:
        return compare_with_iteration(self.regressions(self.mu), self.steps, REMARKS)
