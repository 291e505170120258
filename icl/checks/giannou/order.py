"""giannou, eq. (3.4): a step of order k raises the residual to its k-th power, I - X_t A = (I - X_0 A)^{k^t}.

B samples, D covariates.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from icl.algorithms.newton import newton_iteration, transpose_start
from icl.checks.giannou.support.mutants import least_wrong, or_infinite
from icl.checks.giannou.support.newton_steps import (
    exact_identity,
    sizes_of_terms,
    steps_by_accuracy,
    steps_by_condition,
)
from icl.checks.giannou.support.problems import MAX_DIM, TOO_LONG, draw_designs, validate_condition
from icl.checks.numbers import exact, finding, tried
from icl.checks.rounding import PATH, path_rounding
from icl.checks.settings import integer, validate
from icl.checks.verdict import Finding
from icl.errors import InputError, real
from icl.random import generator

REMARKS = [
    "The identity holds for every X_0, A and order, also for singular A. Convergence of X_t requires a "
    "spectral radius of I - X_0 A below 1, which X_0 = alpha A^T has for alpha < 2 / lambda_max(A^T A).",
    "With the authors' alpha = 1 / (s_1^2 + s_d^2) order k needs log_k(log(1/eps) / log(1 + 1/kappa^2)) "
    "steps, about 2 log_k(kappa) + log_k log(1/eps).",
]


@dataclass(eq=False)
class Order:
    """Settings: order k, dimension, condition of A, steps, number of random A (`samples`), accuracy, seed."""

    reference = "Section 3.2.1, eqs. (3.3) and (3.4)"
    claim = (
        "After t steps the iteration (3.4) of order k has the residual I - X_t A = (I - X_0 A)^{k^t}: it "
        "converges with order k."
    )

    order: int = integer(3, 2, 8)
    dim: int = integer(5, 1, MAX_DIM, TOO_LONG)
    condition: float = 10.0
    steps: int = integer(6, 1, 64)
    accuracy: float = 1e-8
    seed: int = integer(0, 0)
    samples: int = integer(16, 1, 1000)

    def __post_init__(self) -> None:
        validate(self)
        self.condition = validate_condition(self.condition, 1e4)
        self.accuracy = real("check.accuracy", self.accuracy, 0, open_low=True)
        if not 1e-14 <= self.accuracy < 1:
            raise InputError(f"check.accuracy={self.accuracy}: must be from 1e-14 to below 1, as rounding is")

    def measure(self) -> Finding:
        rng, k = generator(self.seed, "check"), self.order
        A_BDD = draw_designs(rng, self.dim, self.dim, self.condition, self.samples)
        wrong = {f"order {other}": self._error(A_BDD, other) for other in (k - 1, k + 1)}
        bound = path_rounding(4 * k * (self.dim + 2))
        mismatches = 0 if exact_identity(k, 2 if k < 5 else 1) else 1
        by_condition, off = steps_by_condition(k, self.dim, self.accuracy)
        return finding(
            [
                tried(max_error=self._error(A_BDD, k))
                .means("largest difference of I - X_t A from (I - X_0 A)^(k^t), relative to its terms")
                .at_most(bound, PATH),
                exact(exact_mismatches=mismatches)
                .means("number of entries in which the identity is false in rational arithmetic")
                .at_most(0.5, "rational arithmetic"),
                exact(steps_off_formula=off)
                .means("largest difference of the number of steps from its formula")
                .compared_by("steps_off_formula", "steps of the iteration, and formula")
                .at_most(0.5, "the formula for the steps"),
                exact(
                    steps_by_condition=by_condition,
                    steps_by_accuracy=steps_by_accuracy(k, self.dim, self.condition),
                    order=k,
                )
                .means(
                    steps_by_condition="number of steps to the accuracy, by condition number of A",
                    steps_by_accuracy="number of steps at the given condition number, by accuracy",
                    order="order k of the iteration",
                )
                .compared_by("steps_off_formula", "steps of the iteration"),
            ],
            least_wrong("the error against the powers of a wrong order", wrong, bound),
            notes=[
                "The power of the residual is computed by an eigendecomposition. Errors are relative to "
                "the rounded terms, where the errors of earlier steps are propagated by the derivative of "
                "the power. The identity is also tested in rational arithmetic."
            ],
            remarks=REMARKS,
        )

    def _error(self, A_BDD: Tensor, power: int) -> float:
        """Return the largest |I - X_t A - (I - X_0 A)^{power^t}| over t and samples, in shares of sizes."""
        X_TBDD = newton_iteration(A_BDD, transpose_start(A_BDD), self.order, self.steps)
        identity_DD = torch.eye(self.dim, dtype=torch.float64)
        _, s_BD, Vt_BDD = torch.linalg.svd(A_BDD)
        r_BD, off = 1 - s_BD**2 / (s_BD[:, :1] ** 2 + s_BD[:, -1:] ** 2), []
        sizes_TB = sizes_of_terms(X_TBDD, A_BDD, r_BD, self.order)
        for t, X_BDD in enumerate(X_TBDD):
            expected_BDD = (Vt_BDD.mT * (r_BD ** float(power**t))[:, None]) @ Vt_BDD
            error_B = (identity_DD - X_BDD @ A_BDD - expected_BDD).flatten(1).norm(dim=1)
            off.append(or_infinite(float((error_B / sizes_TB[t]).max())))
        return max(off)
