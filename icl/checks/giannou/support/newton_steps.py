"""Steps of Newton's iteration of order k, counted and by the formula, and its identity (3.4) in rationals."""

from __future__ import annotations

import math
from fractions import Fraction
from math import comb

import numpy as np
import torch
from torch import Tensor

from icl.algorithms.newton import newton_iteration, transpose_start
from icl.theory.quadratic import EPSILON

CONDITIONS = (2.0, 10.0, 100.0, 1000.0, 10_000.0)
ACCURACIES = (1e-1, 1e-2, 1e-4, 1e-8)


def steps_by_condition(order: int, dim: int, accuracy: float) -> tuple[dict[str, list[float]], float]:
    """Count steps until |I - X_t A| <= accuracy, by condition; return how far off the formula they are,
    too."""
    steps = [_steps(order, dim, condition, accuracy) for condition in CONDITIONS]
    off = [
        abs(taken - steps_by_formula(order, condition, accuracy))
        for taken, condition in zip(steps, CONDITIONS, strict=True)
    ]
    return {"conditions": list(CONDITIONS), "steps": [float(taken) for taken in steps]}, float(max(off))


def steps_by_accuracy(order: int, dim: int, condition: float) -> dict[str, list[float]]:
    """Count steps until |I - X_t A| is at most each of ACCURACIES."""
    steps = [float(_steps(order, dim, max(condition, 1 + 1e-9), accuracy)) for accuracy in ACCURACIES]
    return {"accuracies": list(ACCURACIES), "steps": steps}


def _steps(order: int, dim: int, condition: float, accuracy: float) -> int:
    s_D = torch.from_numpy(np.geomspace(1, 1 / condition, max(dim, 2)))
    return steps_to(torch.diag(s_D), order, accuracy)


def steps_to(A_DD: Tensor, order: int, accuracy: float) -> int:
    """Count steps from the authors' start until the residual's largest singular value is at most
    `accuracy`."""
    X_DD, identity_DD = transpose_start(A_DD), torch.eye(len(A_DD), dtype=torch.float64)
    for t in range(200):
        if float(torch.linalg.matrix_norm(identity_DD - X_DD @ A_DD, 2)) <= accuracy:
            return t
        X_DD = newton_iteration(A_DD, X_DD, order, 1)[-1]
    return 200


def steps_by_formula(order: int, condition: float, accuracy: float) -> int:
    """Return the least t with r^{k^t} <= accuracy, r = 1 - s_d^2 / (s_1^2 + s_d^2) = kappa^2 / (1 +
    kappa^2)."""
    shrink = math.log1p(1 / condition**2)
    return max(0, math.ceil(math.log(math.log(1 / accuracy) / shrink) / math.log(order) - 64 * EPSILON))


def exact_identity(order: int, steps: int) -> bool:
    """Return whether (3.4) as printed has the identity, in rational arithmetic on a 3 x 3 matrix."""
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


def sizes_of_terms(X_TBDD: list[Tensor], A_BDD: Tensor, r_BD: Tensor, order: int) -> list[Tensor]:
    """Return sizes of what is rounded on the way to I - X_t A, in Frobenius norms.

    Computing the residual I - A X rounds terms of size a = |A| |X| + sqrt(D); through the at most k^2 / 2
    products of Horner's rule that moves X_{t+1} by |X| k^2 a / 2 and I - X A by a^2 k^2 / 2 more; an
    earlier error is multiplied by at most k r^{k-1}, r the residual's norm.
    """
    k, dim, sizes = order, A_BDD.shape[-1], []
    size_B = torch.zeros(len(A_BDD), dtype=torch.float64)
    for t, X_BDD in enumerate(X_TBDD):
        a_B = A_BDD.flatten(1).norm(dim=1) * X_BDD.flatten(1).norm(dim=1) + dim**0.5
        r_B = r_BD.amax(1) ** float(k ** max(t - 1, 0))
        if t:
            size_B = size_B * k * r_B ** (k - 1)
        # the eigendecomposition's power k^t of r, rounded as r^{k^t - 1} k^t is
        power_B = k**t * r_BD.amax(1) ** float(k**t - 1)
        size_B = size_B + k**2 * a_B**2
        sizes.append(size_B + power_B * dim**0.5)
    return sizes
