"""giannou, section 6: powers of A after l layers of linear attention, 3^l, against Newton's of order 2 and 3.

Polynomials in one number a, an eigenvalue of a symmetric A, with integer coefficients: nothing is rounded.
"""

from __future__ import annotations

import math
from math import comb

import numpy as np
import torch

from icl.algorithms.newton import transpose_start
from icl.checks.verdict import Bound, Control, Finding, at_most, combine, decide
from icl.errors import real, whole
from icl.random import generator
from icl.theory.quadratic import EPSILON

REMARKS = [
    "The degrees are as section 6 counts them: 3^l after l layers, 2^{t+1} - 1 and 2 * 3^t - 1 after t "
    "steps of order 2 and 3. They do not carry the conclusion that linear attention will not outperform "
    "order 3: Newton's iterates are not the best of their degree. On eigenvalues of ratio kappa the best "
    "polynomial of degree 3^l has a residual far below that of order 3, whose degree is twice as high: "
    "best_residual against residual_order3."
]
Polynomial = np.ndarray  # coefficients, the constant first; Python integers


class Degrees:
    """Settings: most layers or steps, ratio of the extreme eigenvalues of A, seed of the random weights."""

    reference = "Section 6, linear regression"
    claim = "The highest power of A is 3^l after l layers: at least that of order 2, below that of order 3."

    def __init__(self, layers: int = 4, condition: float = 10.0, seed: int = 0) -> None:
        self.layers = whole("check.layers", layers, 1, 6)
        self.condition = real("check.condition", condition, 1, open_low=True)
        self.seed = whole("check.seed", seed, 0)

    def measure(self) -> Finding:
        counts = range(1, self.layers + 1)
        attention = attention_degrees(self.layers, self.seed)
        second, third = newton_degrees(2, self.layers), newton_degrees(3, self.layers)
        expected = [
            (3**t, 2 ** (t + 1) - 1, 2 * 3**t - 1, a, b, c)
            for t, a, b, c in zip(counts, attention, second, third, strict=True)
        ]
        counted = Bound(0.5, "degrees are counted in integers", "mismatches")
        wrong = sum(case[:3] != case[3:] for case in expected)
        disordered = sum(
            not ((a == b if t == 1 else a > b) and a < c)
            for t, a, b, c in zip(counts, attention, second, third, strict=True)
        )
        residuals_off = max(
            relative(residual, other)
            for t in counts
            for residual, other in (
                (best_residual(3**t, self.condition), residual_by_roots(3**t + 1, self.condition)),
                (newton_residual(2, t, self.condition), residual_by_steps(2, t, self.condition)),
                (newton_residual(3, t, self.condition), residual_by_steps(3, t, self.condition)),
            )
        )
        # Chebyshev's points a_j, of n, are known to 2^-52 (kappa + 1), and sum_j (kappa + 1) / (a_j - 1) is
        # n^2 (kappa + 1) / (kappa - 1); the power 3^t of a number multiplies its rounding by 3^t.
        most = 3**self.layers + 1
        spread = (self.condition + 1) / (self.condition - 1)
        rounding = EPSILON * (4 * most**2 * spread + 16 * most)
        verdict, shown = combine(
            [
                (decide(wrong + disordered, 0.5), counted),
                at_most("residuals_off", residuals_off, rounding, "rounding of powers, and of roots"),
            ]
        )
        fourth = newton_degrees(4, self.layers)
        control = sum(a != b for a, b in zip(third, fourth, strict=True))
        return Finding(
            verdict,
            {
                "mismatches": wrong + disordered,
                "layers": list(counts),
                "degree_attention": attention,
                "degree_order2": second,
                "degree_order3": third,
                "residuals_off": residuals_off,
                "best_residual": [best_residual(3**t, self.condition) for t in counts],
                "residual_order2": [newton_residual(2, t, self.condition) for t in counts],
                "residual_order3": [newton_residual(3, t, self.condition) for t in counts],
            },
            shown,
            Control("steps at which order 4 does not have order 3's degree", control, control > 0.5),
            remarks=REMARKS,
            kinds={"*": "exact"},
        )


def times(p: Polynomial, q: Polynomial) -> Polynomial:
    return np.convolve(p, q)


def plus(p: Polynomial, q: Polynomial) -> Polynomial:
    total = np.zeros(max(len(p), len(q)), dtype=object)
    total[: len(p)] += p
    total[: len(q)] += q
    return total


def degree(p: Polynomial) -> int:
    return max((i for i, coefficient in enumerate(p) if coefficient != 0), default=0)


def attention_degrees(layers: int, seed: int) -> list[int]:
    """Highest power of a in H after each layer of one head with random integer weights, H_0 = [a; 1].

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
    """The leading term alone, its coefficient's sign kept: weights are positive, so nothing cancels."""
    only = np.zeros(degree(p) + 1, dtype=object)
    only[-1] = 1
    return only


def newton_degrees(order: int, steps: int) -> list[int]:
    """Degree of X_t by (3.4) as printed, from X_0 = a; the leading term alone is kept."""
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
    """Least max |1 - a q(a)| over a in [1, kappa] and q of this degree: 1 / T_{degree+1}((k+1) / (k-1))."""
    x = (degree + 1) * math.acosh((condition + 1) / (condition - 1))
    return 2 * math.exp(-x) / (1 + math.exp(-2 * x))


def newton_residual(order: int, steps: int, condition: float) -> float:
    """max |1 - a X_t(a)| over [1, kappa] from the authors' X_0 = a / (1 + kappa^2)."""
    return (1 - 1 / (1 + condition**2)) ** (order**steps)


def residual_by_roots(degree: int, condition: float) -> float:
    """The residual's size at a = 1 of the polynomial 1 - a q(a), of that degree, that vanishes at Chebyshev's
    points of [1, kappa]: the product of 1 - 1 / a_j."""
    j = np.arange(degree)
    roots = (condition + 1) / 2 + (condition - 1) / 2 * np.cos((2 * j + 1) * np.pi / (2 * degree))
    return float(np.exp(np.log(np.abs(1 - 1 / roots)).sum()))


def residual_by_steps(order: int, steps: int, condition: float) -> float:
    """The largest |1 - a X_t(a)| at a = 1 and a = kappa, by the iteration itself."""
    A_DD = torch.diag(torch.tensor([condition, 1.0], dtype=torch.float64))
    residual_DD = torch.eye(2, dtype=torch.float64) - transpose_start(A_DD) @ A_DD
    for _ in range(steps):
        residual_DD = torch.linalg.matrix_power(residual_DD, order)
    return float(torch.linalg.matrix_norm(residual_DD, 2))


def relative(residual: float, other: float) -> float:
    """Return the relative distance of two residuals; those that float64 cannot tell from 0 are equal."""
    return abs(residual - other) / max(residual, other, 1e-280)
