"""Gauss rules: of a measure on [0, inf) that is known by its exact moments m_k, and Legendre's.  J: number of
nodes.

A rule of J nodes integrates every polynomial of degree 2J - 1 exactly, with positive weights. The
expectation of the square of a polynomial of degree J - 1 becomes a sum of squares: no cancellation, full
double precision, where the sum over moments loses all digits.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import mpmath
import numpy as np
from numpy.typing import NDArray

MAX_NODES = 64  # the exact recurrence works on rationals of thousands of digits beyond


def recurrence(moments: Sequence[Fraction], count: int) -> tuple[list[Fraction], list[Fraction]]:
    """Return the first `count` alpha, beta of pi_{k+1} = (s - alpha_k) pi_k - beta_k pi_{k-1}; beta_0 = m_0.

    pi_k are the monic orthogonal polynomials of the measure. Chebyshev's algorithm, exact; takes 2 count
    moments.
    """
    if len(moments) < 2 * count:
        raise ValueError(f"{count} coefficients take {2 * count} moments, got {len(moments)}")
    before, now = [Fraction(0)] * (2 * count), [Fraction(m) for m in moments[: 2 * count]]
    alphas, betas = [now[1] / now[0]], [now[0]]
    # now[l] = integral of pi_k s^l; the first nonzero entry is l = k, the squared norm of pi_k.
    for k in range(1, count):
        after = [Fraction(0)] * (2 * count)
        for power in range(k, 2 * count - k):
            after[power] = (
                now[power + 1] - alphas[-1] * now[power] - (betas[-1] * before[power] if k > 1 else 0)
            )
        if after[k] <= 0:
            raise ValueError(f"the moments are not those of a measure with more than {k} points")
        alphas.append(after[k + 1] / after[k] - now[k] / now[k - 1])
        betas.append(after[k] / now[k - 1])
        before, now = now, after
    return alphas, betas


def gauss_rule(moments: Sequence[Fraction], count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Nodes (ascending) and weights (positive, sum m_0), each correct to the last bits of a double."""
    if not 1 <= count <= MAX_NODES:
        raise ValueError(f"count={count}: must be from 1 to {MAX_NODES} nodes")
    return _rule(tuple(moments[: 2 * count]), count)


@lru_cache(maxsize=64)
def _rule(moments: tuple[Fraction, ...], count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    alphas, betas = recurrence(moments, count)
    # Golub and Welsch: the nodes are the eigenvalues of the Jacobi matrix. Weights of rare, large nodes are
    # many orders below the largest, so both are computed in extended precision and rounded once.
    with mpmath.workdps(40 + 2 * count):
        alpha = [mpmath.mpf(a.numerator) / a.denominator for a in alphas]
        beta = [mpmath.mpf(b.numerator) / b.denominator for b in betas]
        jacobi = mpmath.zeros(count)
        for k in range(count):
            jacobi[k, k] = alpha[k]
            if k:
                jacobi[k, k - 1] = jacobi[k - 1, k] = mpmath.sqrt(beta[k])
        nodes = sorted(mpmath.eigsy(jacobi, eigvals_only=True))
        weights = [_christoffel(node, alpha, beta) for node in nodes]
        rule = np.array([float(s) for s in nodes]), np.array([float(w) for w in weights])
    for array in rule:
        array.setflags(write=False)
    return rule


def _christoffel(point: mpmath.mpf, alpha: list[mpmath.mpf], beta: list[mpmath.mpf]) -> mpmath.mpf:
    """1 / sum over k of pi_k(point)^2 / ||pi_k||^2."""
    previous, current, norm = mpmath.mpf(0), mpmath.mpf(1), beta[0]
    total = 1 / norm
    for k in range(len(alpha) - 1):
        previous, current = current, (point - alpha[k]) * current - (beta[k] * previous if k else 0)
        norm *= beta[k + 1]
        total += current**2 / norm
    return 1 / total


def legendre_rule(count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Nodes (ascending) and weights (sum 2) of Gauss and Legendre's rule on [-1, 1].

    Newton's method for 1 - x, with the differences P_{k+1} - P_k: weights are right to some 16 * 2^-52, where
    NumPy's and SciPy's lose a factor `count` ** 2 of that at the ends (10^-9 at 601 nodes).
    """
    angle_J = np.pi * (4 * np.arange(1, (count + 1) // 2 + 1) - 1) / (4 * count + 2)
    gap_J = 2 * np.sin(angle_J / 2) ** 2  # 1 - x, of the nodes that are not negative
    for _ in range(10):
        value_J, difference_J = 1 - gap_J, -gap_J
        slope_before_J, slope_J = np.zeros_like(gap_J), np.ones_like(gap_J)
        for k in range(1, count):
            difference_J = (k * difference_J - (2 * k + 1) * gap_J * value_J) / (k + 1)
            slope_before_J, slope_J = slope_J, slope_before_J + (2 * k + 1) * value_J
            value_J = value_J + difference_J
        step_J = value_J / slope_J
        gap_J = gap_J + step_J
        if np.abs(step_J / gap_J).max() < 4 * np.finfo(np.float64).eps:
            break
    weight_J, half = 2 / (gap_J * (2 - gap_J) * slope_J**2), count // 2
    node_J = 1 - gap_J
    if count % 2:
        node_J[-1] = 0.0
    return np.concatenate([-node_J[:half], node_J[::-1]]), np.concatenate([weight_J[:half], weight_J[::-1]])
