"""Degrees and residuals of the polynomials that layers of attention and Newton's iteration build of A."""

from __future__ import annotations

import math
from math import comb

import numpy as np
import torch

from icl.algorithms.newton import transpose_start
from icl.random import generator

Polynomial = np.ndarray  # coefficients, the constant first; Python integers


def times(p: Polynomial, q: Polynomial) -> Polynomial:
    """Return the product."""
    return np.convolve(p, q)


def plus(p: Polynomial, q: Polynomial) -> Polynomial:
    """Return the sum."""
    total = np.zeros(max(len(p), len(q)), dtype=object)
    total[: len(p)] += p
    total[: len(q)] += q
    return total


def degree(p: Polynomial) -> int:
    """Return the highest power whose coefficient is not zero."""
    return max((i for i, coefficient in enumerate(p) if coefficient != 0), default=0)


def attention_degrees(layers: int, seed: int) -> list[int]:
    """Return the highest power of a in H after each layer of one head with random integer weights, H_0 = [a;
    1].

    One token; with a matrix A for a and I for 1 the powers are those of A. Coefficients beyond the leading
    one do not matter and are dropped, as they would have thousands of digits.
    """
    rng = generator(seed, "check")
    H = [np.array([0, 1], dtype=object), np.array([1], dtype=object)]
    found = []
    for _ in range(layers):
        V, K, Q = (rng.integers(1, 6, (2, 2)) for _ in range(3))
        value, key, query = ([_combined(W, H, row) for row in range(2)] for W in (V, K, Q))
        score = plus(times(key[0], query[0]), times(key[1], query[1]))
        H = [_leading(plus(h, times(v, score))) for h, v in zip(H, value, strict=True)]
        found.append(max(degree(h) for h in H))
    return found


def _combined(W: np.ndarray, H: list[Polynomial], row: int) -> Polynomial:
    return plus(int(W[row, 0]) * H[0], int(W[row, 1]) * H[1])


def _leading(p: Polynomial) -> Polynomial:
    """Return the leading term alone: weights are positive, so nothing cancels."""
    only = np.zeros(degree(p) + 1, dtype=object)
    only[-1] = 1
    return only


def newton_degrees(order: int, steps: int) -> list[int]:
    """Return the degree of X_t by (3.4) as printed, from X_0 = a; the leading term alone is kept."""
    X, found = np.array([0, 1], dtype=object), []
    for _ in range(steps):
        AX, power = times(np.array([0, 1], dtype=object), X), np.array([1], dtype=object)
        total = 0 * power
        for m in range(order):
            term = (-1) ** m * comb(order, m + 1) * power
            total = plus(total, term)
            power = times(power, AX)
        X = times(X, total)
        found.append(degree(X))
        X = _leading(X)
    return found


def best_residual(degree: int, condition: float) -> float:
    """Return the least max |1 - a q(a)| over a in [1, kappa] and q of this degree, 1 / T_{degree+1}(x) with
    x = (kappa + 1) / (kappa - 1)."""
    x = (degree + 1) * math.acosh((condition + 1) / (condition - 1))
    return 2 * math.exp(-x) / (1 + math.exp(-2 * x))


def newton_residual(order: int, steps: int, condition: float) -> float:
    """Return max |1 - a X_t(a)| over [1, kappa] from the authors' X_0 = a / (1 + kappa^2)."""
    return (1 - 1 / (1 + condition**2)) ** (order**steps)


def residual_by_roots(degree: int, condition: float) -> float:
    """Return the size at a = 1 of the polynomial 1 - a q(a), of that degree, that vanishes at Chebyshev's
    points of [1, kappa]: the product of 1 - 1 / a_j."""
    j = np.arange(degree)
    roots = (condition + 1) / 2 + (condition - 1) / 2 * np.cos((2 * j + 1) * np.pi / (2 * degree))
    return float(np.exp(np.log(np.abs(1 - 1 / roots)).sum()))


def residual_by_steps(order: int, steps: int, condition: float) -> float:
    """Return the largest |1 - a X_t(a)| at a = 1 and a = kappa, by the iteration itself."""
    A_DD = torch.diag(torch.tensor([condition, 1.0], dtype=torch.float64))
    residual_DD = torch.eye(2, dtype=torch.float64) - transpose_start(A_DD) @ A_DD
    for _ in range(steps):
        residual_DD = torch.linalg.matrix_power(residual_DD, order)
    return float(torch.linalg.matrix_norm(residual_DD, 2))


def relative(residual: float, other: float) -> float:
    """Return the relative distance of two residuals; those that float64 cannot tell from 0 are equal."""
    return abs(residual - other) / max(residual, other, 1e-280)
