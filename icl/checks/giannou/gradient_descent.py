"""giannou, section 3.2.1: gradient descent takes a number of steps linear in kappa(A^T A), Newton's iteration
one logarithmic in it.

The error w_t - w of descent on |A w - y|^2 / 2 is (I - eta A^T A)^t times the first. D covariates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from icl.checks.giannou.support.newton_steps import steps_by_formula
from icl.checks.numbers import exact, finding, tried
from icl.checks.settings import integer, validate
from icl.checks.verdict import Control, Finding
from icl.errors import InputError, real
from icl.random import generator
from icl.theory.quadratic import EPSILON

RUN = "steps of the iteration, counted by hand"
CONDITIONS = (2.0, 10.0, 100.0, 1000.0)  # of A^T A
OTHER_SIZES = (0.5, 0.9, 0.999, 1.001)  # of the best step size
REMARKS = [
    "The two counts are in different things. kappa(A^T A) = kappa(A)^2: Newton's iteration takes about 2 "
    "log2 kappa(A) + log2 log(1/eps) = log2 kappa(A^T A) + log2 log(1/eps) steps from the authors' start, "
    "gradient descent kappa(A^T A)/2 log(1/eps) with the best fixed step size.",
    "In d dimensions conjugate gradients end after d steps, whatever kappa: the comparison is with a fixed "
    "step size.",
]


@dataclass(eq=False)
class GradientDescent:
    """Settings: dimension, accuracy eps, seed of the random directions."""

    reference = "Section 3.2.1 (Akyurek et al. 2022), Remark 4.5"
    claim = (
        "Gradient descent on least squares takes O(kappa(A^T A) log(1/eps)) steps to accuracy eps, and from "
        "the worst start no fewer, up to a constant; Newton's iteration takes O(log kappa + log log(1/eps))."
    )

    dim: int = integer(5, 2, 200, "the runs take minutes")
    accuracy: float = 1e-3
    seed: int = integer(0, 0)

    def __post_init__(self) -> None:
        validate(self)
        self.accuracy = real("check.accuracy", self.accuracy, 0, open_low=True)
        if not 1e-8 <= self.accuracy <= 0.1:
            raise InputError(f"check.accuracy={self.accuracy}: must be from 1e-08 to 0.1")

    def measure(self) -> Finding:
        log = math.log(1 / self.accuracy)
        rng = generator(self.seed, "check")
        runs = [descent_steps(rng, self.dim, kappa, self.accuracy) for kappa in CONDITIONS]
        # artanh(1/kappa) lies between 1/kappa and 1/(kappa - 1/kappa), and a count is rounded up.
        off = [self._off(steps, kappa, log) for steps, kappa in zip(runs, CONDITIONS, strict=True)]
        newton = [steps_by_formula(2, kappa**0.5, self.accuracy) for kappa in CONDITIONS]
        # 1 / log(1 + 1/kappa) <= kappa + 1/2
        most = [math.log2((kappa + 0.5) * log) + 1 for kappa in CONDITIONS]
        faster = [
            descent_steps(rng, self.dim, CONDITIONS[2], self.accuracy, share) - runs[2]
            for share in OTHER_SIZES
        ]
        control = max(
            abs(steps - kappa**0.5 / 2 * log) / (1 + log)
            for steps, kappa in zip(runs, CONDITIONS, strict=True)
        )
        return finding(
            [
                tried(off=max(off))
                .means("largest difference of the steps from kappa/2 log(1/eps), over what rounding allows")
                .at_most(1.0, "1 + log(1/eps) / (2 kappa), by artanh(1/kappa)"),
                exact(newton_excess=max(n - m for n, m in zip(newton, most, strict=True)))
                .means("largest excess of Newton's steps over log2((kappa + 1/2) log(1/eps)) + 1")
                .in_tests(RUN)
                .at_most(0.0, "log(1 + 1/kappa) >= 1/(kappa + 1/2)"),
                tried(gain=-min(faster))
                .means("number of steps saved by another fixed step size, the most of those tried")
                .at_most(0.5, "the best step size is 2 / (lambda_1 + lambda_d)", otherwise="undecided"),
                exact(conditions=list(CONDITIONS)).means("condition numbers of A^T A").by_definition(),
                exact(descent_steps=runs)
                .means("numbers of steps of gradient descent, by condition")
                .compared_by("off", "kappa / 2 log(1 / eps), up to what is rounded up"),
                exact(newton_steps=newton)
                .means("numbers of steps of Newton's iteration, by condition")
                .in_tests(RUN),
            ],
            Control(
                "the first number for sqrt(kappa)/2 log(1/eps), a rate that momentum has",
                control,
                control > 1,
            ),
            notes=["Descent is run from the worst start, at the step size 2 / (lambda_1 + lambda_d)."],
            remarks=REMARKS,
        )

    def _off(self, steps: int, kappa: float, log: float) -> float:
        return abs(steps - kappa / 2 * log) / (1 + log / (2 * kappa) + EPSILON * kappa * log)


def descent_steps(
    rng: np.random.Generator, dim: int, condition: float, accuracy: float, share: float = 1.0
) -> int:
    """Count steps of w <- w - eta A^T (A w - y) until |w - w*| <= accuracy |w_0 - w*|, from the start that is
    slowest: along the extreme eigenvector that eta shrinks less. The best eta shrinks both alike."""
    lambda_D = np.geomspace(1.0, 1.0 / condition, dim)
    V_DD, _ = np.linalg.qr(rng.standard_normal((dim, dim)))
    H_DD = (V_DD * lambda_D) @ V_DD.T
    target_D = rng.standard_normal(dim)
    eta = share * 2 / (lambda_D[0] + lambda_D[-1])
    slowest = int(np.argmax(np.abs(1 - eta * lambda_D)))
    b_D, w_D = H_DD @ target_D, target_D + V_DD[:, slowest]
    for step in range(10**6):
        if np.linalg.norm(w_D - target_D) <= accuracy * (1 + 1e-9):
            return step
        w_D = w_D - eta * (H_DD @ w_D - b_D)
    raise RuntimeError("gradient descent did not arrive")
