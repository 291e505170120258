"""giannou, Theorem 4.2: least squares by T steps of Newton's iteration in 3 + T linear attention layers."""

from __future__ import annotations

import torch

from icl.checks.giannou.iteration import Regression, compared
from icl.checks.giannou.problems import Design, condition_of, conditioned, given_design, sizes
from icl.checks.verdict import Finding
from icl.errors import whole
from icl.random import generator

MAX_STEPS = 64
REMARKS = [
    "The operations described are right, the listings of weights are not: a Newton layer's key must read "
    "block 2 (R) and not 1, the first output layer's key block 4 (A^T) and its query block 1 (X_T), not 3 "
    "and 3, and the last layer's values row 4d+3, not the row of y.",
    "H_1 is printed as H_0 minus [-I; -I; ..]: the second head is added, and takes the identity away.",
    "X_0 = epsilon A^T A leaves I - X_0 R = I - epsilon R^2, whose eigenvalues spread as kappa(A)^4. X_0 = "
    "epsilon I with epsilon < 2 / lambda_max(R), which block 1 allows as well, would spread them as "
    "kappa(A)^2 and halve the steps before convergence is quadratic.",
]


class Theorem4_2:
    """Settings: sizes, steps T, condition of A (or A itself as `design`), prompts (`samples`), seed."""

    reference = "Theorem 4.2; Appendix A.2"
    claim = (
        "3 + T linear attention layers of two heads and width 4d + 3 answer a_test^T X_T A^T y, with X_T "
        "after T steps of Newton's iteration on A^T A."
    )

    def __init__(
        self,
        dim: int = 5,
        context: int = 20,
        steps: int = 20,
        condition: float = 10.0,
        design: Design = None,
        seed: int = 0,
        samples: int = 8,
    ) -> None:
        self.dim, self.context = sizes(dim, context)
        self.steps = whole("check.steps", steps, 0, MAX_STEPS)
        self.condition = condition_of(condition, 1e4)
        self.design = given_design(design, dim, context)
        self.seed, self.samples = whole("check.seed", seed, 0), whole("check.samples", samples, 1, 1000)

    def measure(self) -> Finding:
        return compared(drawn(self, 0.0), self.steps, REMARKS)


def drawn(check: Theorem4_2, mu: float) -> list[Regression]:
    """Prompts with labels of a random w and noise; drawn designs are scaled at random, so epsilon matters."""
    rng = generator(check.seed, "check")
    A_BND = conditioned(rng, check.context, check.dim, check.condition, check.samples)
    A_BND = A_BND * torch.from_numpy(10 ** rng.uniform(-0.5, 0.5, (check.samples, 1, 1)))
    if check.design is not None:
        A_BND = check.design.expand(check.samples, -1, -1)
    w_BD1 = torch.from_numpy(rng.standard_normal((check.samples, check.dim, 1)))
    noise_BN = torch.from_numpy(0.1 * rng.standard_normal((check.samples, check.context)))
    test_BD = torch.from_numpy(rng.standard_normal((check.samples, check.dim)))
    y_BN = (A_BND @ w_BD1)[..., 0] + noise_BN
    return [Regression(A, y, test, mu) for A, y, test in zip(A_BND, y_BN, test_BD, strict=True)]
