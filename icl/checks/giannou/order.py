"""giannou, eq. (3.4): a step of order k raises the residual to its k-th power, I - X_t A = (I - X_0 A)^{k^t}.

B samples, D covariates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from math import comb

import numpy as np
import torch
from torch import Tensor

from icl.algorithms.newton import newton_iteration, transpose_start
from icl.checks.giannou.support.mutants import least_wrong, or_infinite
from icl.checks.giannou.support.problems import MAX_DIM, condition_of, conditioned
from icl.checks.rounding import along_a_path
from icl.checks.settings import in_range
from icl.checks.verdict import Finding, at_most, combine
from icl.errors import InputError, real, whole
from icl.random import generator
from icl.theory.quadratic import EPSILON

MAX_ORDER = 8
CONDITIONS = (2.0, 10.0, 100.0, 1000.0, 10_000.0)
ACCURACIES = (1e-1, 1e-2, 1e-4, 1e-8)
REMARKS = [
    "The identity holds for any X_0 and A, whatever the order, singular A included; that X_t converges needs "
    "the spectral radius of I - X_0 A below 1, which X_0 = alpha A^T has for alpha < 2 / lambda_max(A^T A).",
    "With the authors' alpha = 1 / (s_1^2 + s_d^2) order k needs log_k(log(1/eps) / log(1 + 1/kappa^2)) "
    "steps, about 2 log_k(kappa) + log_k log(1/eps).",
]


class Order:
    """Settings: order k, dimension, condition of A, steps, number of random A (`samples`), accuracy, seed."""

    reference = "Section 3.2.1, eqs. (3.3) and (3.4)"
    claim = "The iteration (3.4) of order k has I - X_t A = (I - X_0 A)^{k^t}."

    def __init__(
        self,
        order: int = 3,
        dim: int = 5,
        condition: float = 10.0,
        steps: int = 6,
        accuracy: float = 1e-8,
        seed: int = 0,
        samples: int = 16,
    ) -> None:
        self.order = whole("check.order", order, 2, MAX_ORDER)
        self.dim = in_range("check.dim", dim, 1, MAX_DIM, "the random problems take minutes")
        self.condition = condition_of(condition, 1e4)
        self.steps = whole("check.steps", steps, 1, 64)
        self.accuracy = real("check.accuracy", accuracy, 0, open_low=True)
        if not 1e-14 <= self.accuracy < 1:
            raise InputError(f"check.accuracy={accuracy}: must be from 1e-14 to below 1, as rounding is")
        self.seed, self.samples = whole("check.seed", seed, 0), whole("check.samples", samples, 1, 1000)

    def measure(self) -> Finding:
        rng = generator(self.seed, "check")
        A_BDD = conditioned(rng, self.dim, self.dim, self.condition, self.samples)
        max_error = self._errors(A_BDD, self.order)
        wrong = {f"order {k}": self._errors(A_BDD, k) for k in (self.order - 1, self.order + 1)}
        bound = along_a_path(4 * self.order * (self.dim + 2))
        exact = exact_identity(self.order, 2 if self.order < 5 else 1)
        steps_by_condition, counted = self._steps()
        verdict, shown = combine(
            [
                at_most("max_error", max_error, bound.value, bound.source),
                at_most("exact_mismatches", 0 if exact else 1, 0.5, "rational arithmetic"),
                at_most("steps_off_formula", counted, 0.5, "the formula for the steps"),
            ]
        )
        return Finding(
            verdict,
            {
                "max_error": max_error,
                "exact_mismatches": 0 if exact else 1,
                "steps_off_formula": counted,
                "steps_by_condition": steps_by_condition,
                "steps_by_accuracy": self._by_accuracy(),
                "order": self.order,
            },
            shown,
            least_wrong("error against the powers of a wrong order", wrong, bound.value),
            kinds={"*": "exact", "max_error": "tried"},
            notes=[
                "max_error: the residual's distance from its power by an eigendecomposition, as a share "
                "of the sizes of the terms rounded, earlier steps' carried along by the derivative of the "
                "power; exact_mismatches: the same identity in rational arithmetic."
            ],
            remarks=REMARKS,
        )

    def _errors(self, A_BDD: Tensor, power: int) -> float:
        """Largest |I - X_t A - (I - X_0 A)^{power^t}| over t and samples, in shares of sizes."""
        X_TBDD = newton_iteration(A_BDD, transpose_start(A_BDD), self.order, self.steps)
        identity_DD = torch.eye(self.dim, dtype=torch.float64)
        s_BD, V_BDD = _right_singular(A_BDD)
        scale_B1 = s_BD[:, :1] ** 2 + s_BD[:, -1:] ** 2
        r_BD, off = 1 - s_BD**2 / scale_B1, []
        sizes_TB = self._sizes(X_TBDD, A_BDD, r_BD)
        for t, X_BDD in enumerate(X_TBDD):
            power_BD = r_BD ** float(power**t)
            expected_BDD = (V_BDD * power_BD[:, None]) @ V_BDD.mT
            error_B = (identity_DD - X_BDD @ A_BDD - expected_BDD).flatten(1).norm(dim=1)
            off.append(or_infinite(float((error_B / sizes_TB[t]).max())))
        return max(off)

    def _sizes(self, X_TBDD: list[Tensor], A_BDD: Tensor, r_BD: Tensor) -> list[Tensor]:
        """Sizes of what is rounded on the way to I - X_t A, in Frobenius norms.

        Computing the residual I - A X rounds terms of size a = |A| |X| + sqrt(D); through the at most k^2 / 2
        products of Horner's rule that moves X_{t+1} by |X| k^2 a / 2 and I - X A by a^2 k^2 / 2 more; an
        earlier error is multiplied by at most k r^{k-1}, r the residual's norm.
        """
        k, sizes = self.order, []
        size_B = torch.zeros(len(A_BDD), dtype=torch.float64)
        for t, X_BDD in enumerate(X_TBDD):
            a_B = A_BDD.flatten(1).norm(dim=1) * X_BDD.flatten(1).norm(dim=1) + self.dim**0.5
            r_B = r_BD.amax(1) ** float(k ** max(t - 1, 0))
            if t:
                size_B = size_B * k * r_B ** (k - 1)
            # the eigendecomposition's power k^t of r, rounded as r^{k^t - 1} k^t is
            power_B = k**t * r_BD.amax(1) ** float(k**t - 1)
            size_B = size_B + k**2 * a_B**2
            sizes.append(size_B + power_B * self.dim**0.5)
        return sizes

    def _steps(self) -> tuple[dict[str, list[float]], float]:
        """Steps until |I - X_t A| <= accuracy, by condition; and how far off the formula they are at most."""
        taken, off = [], 0.0
        for condition in CONDITIONS:
            s_D = torch.from_numpy(np.geomspace(1, 1 / condition, max(self.dim, 2)))
            taken.append(steps_to(torch.diag(s_D), self.order, self.accuracy))
            off = max(off, abs(taken[-1] - steps_by_formula(self.order, condition, self.accuracy)))
        return {"conditions": list(CONDITIONS), "steps": [float(t) for t in taken]}, off

    def _by_accuracy(self) -> dict[str, Sequence[float]]:
        s_D = torch.from_numpy(np.geomspace(1, 1 / max(self.condition, 1 + 1e-9), max(self.dim, 2)))
        steps = [float(steps_to(torch.diag(s_D), self.order, accuracy)) for accuracy in ACCURACIES]
        return {"accuracies": list(ACCURACIES), "steps": steps}


def steps_to(A_DD: Tensor, order: int, accuracy: float) -> int:
    """Steps from the authors' start until the residual's largest singular value is at most `accuracy`."""
    X_DD, identity_DD = transpose_start(A_DD), torch.eye(len(A_DD), dtype=torch.float64)
    for t in range(200):
        if float(torch.linalg.matrix_norm(identity_DD - X_DD @ A_DD, 2)) <= accuracy:
            return t
        X_DD = newton_iteration(A_DD, X_DD, order, 1)[-1]
    return 200


def steps_by_formula(order: int, condition: float, accuracy: float) -> int:
    """Least t with r^{k^t} <= accuracy, r = 1 - s_d^2 / (s_1^2 + s_d^2) = kappa^2 / (1 + kappa^2)."""
    shrink = math.log1p(1 / condition**2)
    return max(0, math.ceil(math.log(math.log(1 / accuracy) / shrink) / math.log(order) - 64 * EPSILON))


def exact_identity(order: int, steps: int) -> bool:
    """The identity for (3.4) as printed, binomials and signs, in rational arithmetic on a 3 x 3 matrix."""
    A = np.array([[Fraction(e) for e in row] for row in ([2, 1, 0], [-1, 3, 1], [1, 0, -2])])
    identity = np.array([[Fraction(int(i == j)) for j in range(3)] for i in range(3)])
    X = start = A.T / 25
    for _ in range(steps):
        power, total = identity, 0 * identity
        for m in range(order):
            total = total + (-1) ** m * comb(order, m + 1) * power
            power = power.dot(A).dot(X)
        X = X.dot(total)
    residual, expected = identity - start.dot(A), identity
    for _ in range(order**steps):
        expected = expected.dot(residual)
    return bool((identity - X.dot(A) == expected).all())


def _right_singular(A_BDD: Tensor) -> tuple[Tensor, Tensor]:
    _, s_BD, Vt_BDD = torch.linalg.svd(A_BDD)
    return s_BD, Vt_BDD.mT
