"""Layers that are multiples of the identity, by the moments E lambda^k of a law of eigenvalues, in rationals.

A layer with the step g takes the error along an eigenvector of Sigma^ to (1 - g lambda) of it, so that L
layers have the risk E prod_l (1 - g_l lambda)^2; g = gamma / L in the paper's letters.
"""

from collections.abc import Sequence
from math import comb

from flint import fmpq, fmpq_mat, fmpq_poly

from icl.theory.marchenko_pastur import eigenvalue_density
from icl.theory.wishart import covariance_moments, mean_trace

ONE, X = fmpq_poly([1]), fmpq_poly([0, 1])


def wishart(dim: int, context: int, count: int) -> list[fmpq]:
    """Return the moments of Sigma^ of `context` examples in `dim` dimensions, a trace divided by `dim`."""
    return [moment / dim for moment in covariance_moments(dim, context, count)]


def marchenko_pastur(alpha: fmpq, count: int) -> list[fmpq]:
    """Return their limits at P / D = alpha."""
    law = eigenvalue_density(1 / fmpq(alpha))
    return [law.moment(k) for k in range(count)]


def atoms(values: Sequence[fmpq], weights: Sequence[fmpq], count: int) -> list[fmpq]:
    """Return sum_k weight_k lambda_k^j."""
    return [sum((w * x**j for x, w in zip(values, weights, strict=True)), fmpq(0)) for j in range(count)]


def error(steps: Sequence[fmpq]) -> fmpq_poly:
    """Return prod_l (1 - g_l lambda), a polynomial in lambda."""
    product = ONE
    for g in steps:
        product *= ONE - g * X
    return product


def risk(moments: Sequence[fmpq], steps: Sequence[fmpq]) -> fmpq:
    return mean_trace(moments, error(steps) ** 2)


def shared(moments: Sequence[fmpq], layers: int) -> fmpq_poly:
    """Return the risk of L equal steps as a polynomial in the step."""
    top = 2 * layers
    return fmpq_poly([(-1) ** k * comb(top, k) * moments[k] for k in range(top + 1)])


def orthogonal(alpha: fmpq, count: int) -> list[fmpq_poly]:
    """Return pi_0 .. of pi_(k + 1) = (lambda - 1 - [k > 0] / alpha) pi_k - pi_(k - 1) / alpha."""
    family = [ONE, X - ONE]
    while len(family) <= count:
        family.append((X - ONE - ONE / alpha) * family[-1] - family[-2] / alpha)
    return family[: count + 1]


def span(steps: Sequence[fmpq]) -> int:
    """Return the dimension of the span of the products of all factors but one."""
    L = len(steps)
    rows = [error([*steps[:k], *steps[k + 1 :]]) for k in range(L)]
    return int(fmpq_mat(L, L, [row[j] for row in rows for j in range(L)]).rank())
