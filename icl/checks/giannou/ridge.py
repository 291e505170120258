"""giannou, Remark 4.4: the construction of Theorem 4.2 with A^T A + mu I for A^T A."""

from __future__ import annotations

from icl.checks.giannou.iteration import compared
from icl.checks.giannou.problems import Design
from icl.checks.giannou.theorem4_2 import Theorem4_2, drawn
from icl.checks.verdict import Finding
from icl.errors import real

REMARKS = [
    "mu I comes in with the head that takes the identities away: no further layer, head or row. The "
    "iteration starts from epsilon (A^T A + mu I), epsilon < 2 / (lambda_max(A^T A) + mu)^2."
]


class Ridge:
    """Settings: those of Theorem 4.2 and the ridge `mu` > 0."""

    reference = "Remark 4.4"
    claim = "The construction of Theorem 4.2 extends to ridge regression: the inverse of A^T A + mu I."

    def __init__(
        self,
        dim: int = 5,
        context: int = 20,
        steps: int = 20,
        mu: float = 0.1,
        condition: float = 10.0,
        design: Design = None,
        seed: int = 0,
        samples: int = 8,
    ) -> None:
        self.mu = real("check.mu", mu, 0, open_low=True)
        self.sized = Theorem4_2(dim, context, steps, condition, design, seed, samples)

    def measure(self) -> Finding:
        return compared(drawn(self.sized, self.mu), self.sized.steps, REMARKS)
