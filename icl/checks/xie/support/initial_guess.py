"""The xie paper's setting: x ~ N(0, I), w ~ N(w*, I), labels without noise, the query token (x_q, y_q) with
y_q = <v, x_q> + b, and the prediction its last entry.

Risk (4) is E (prediction - <w, x_q>)^2, exact here for one layer with any heads. D covariates, C = `context`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from icl.checks.settings import in_range, integer, law_of, validate
from icl.errors import InputError, real
from icl.tasks import LinearRegressionLaw
from icl.tasks.linear_regression import vector_or_norm
from icl.theory.quadratic import QuadraticRisk

MAX_DIM = 40
# The risks' own rounding, some 1e-12 |w*|^2, is then as large as the gradient step's risk, of order d.
LARGEST = 1e6
SMALLEST = 1e-100  # of which the square has all its digits
ROUNDING_OF_RISKS = (
    "rounding of the risks: twice |gradient / 2|^2 over the least eigenvalue of the form, plus 2^-52 times "
    "the number and size of their terms"
)
ROUNDING_OF_GAPS = (
    "rounding of the gap, in proportion to it: 2^-52 times the number and size of the terms of the least "
    "E(1 - <G, Y>)^2 for each unit of |w* - v|^2 + b^2, plus its residual squared over the least eigenvalue"
)
ROUNDING_OF_EXCESSES = (
    "rounding of the excess |x - x_best|_M^2: the square of the rounding errors of x and x_best, 2^-52 times "
    "the number and size of the terms of an entry of M x, over the root of the least eigenvalue of M"
)
TOO_LARGE = "the fourth moments take (dim + 1)^4 numbers, and their spectrum (dim^2 / 2)^3 operations"
Vector = Sequence[float] | None


def xie_law(
    dim: int,
    context: int,
    seed: int = 0,
    *,
    prior_mean: Vector = None,
    prior_mean_norm: float | None = None,
    guess_vector: Vector = None,
    guess_vector_norm: float | None = None,
    guess_bias: float = 0.0,
) -> LinearRegressionLaw:
    """Return the law of these settings, each named `check.` in what is refused."""
    in_range("check.dim", dim, 1, MAX_DIM, TOO_LARGE)
    return law_of(
        dim,
        context,
        seed,
        covariance="identity",
        prior_mean=prior_mean,
        prior_mean_norm=prior_mean_norm,
        guess_vector=guess_vector,
        guess_vector_norm=guess_vector_norm,
        guess_bias=guess_bias,
        read_out=1,
    )


def bounded(key: str, size: float) -> None:
    """Refuses a w*, v or b of which double precision has no square, or none to add to the step's risk."""
    if not size <= LARGEST * (1 + 1e-12):  # a norm spread over equal entries comes back a few ulps off
        raise InputError(
            f"{key}: is {size:g} in size, must be at most {LARGEST:g}; beyond, the rounding of its square is "
            "larger than the risk of a gradient step"
        )
    if 0 < size < SMALLEST:
        raise InputError(f"{key}: is {size:g} in size, must be at least {SMALLEST:g} or 0")


def law_around(
    dim: int, context: int, seed: int, prior_mean: Vector, prior_mean_norm: float | None
) -> LinearRegressionLaw:
    """Return the law of the xie paper; w* is all ones where neither setting says otherwise."""
    in_range("check.dim", dim, 1, MAX_DIM, TOO_LARGE)
    ones = [1.0] * dim if prior_mean is None and prior_mean_norm is None else prior_mean
    law = xie_law(dim, context, seed, prior_mean=ones, prior_mean_norm=prior_mean_norm)
    bounded("check.prior_mean", float(law.mean_RD.norm()))
    return law


def worst(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the one of these (error, rounding) that is the largest share of its rounding."""
    return points[int(np.argmax([error / rounding for error, rounding in points]))]


@dataclass(eq=False)
class AroundPrior:
    """Dimension, context length, prior mean w* (or its norm), seed of all draws."""

    dim: int = integer(10, 1, MAX_DIM, TOO_LARGE)
    context: int = integer(10, 1)
    prior_mean: Vector = None
    prior_mean_norm: float | None = None
    seed: int = integer(0, 0)

    def __post_init__(self) -> None:
        validate(self)
        self.law = law_around(self.dim, self.context, self.seed, self.prior_mean, self.prior_mean_norm)


@dataclass(eq=False)
class WithGuess(AroundPrior):
    """The same, with v (or its norm, 1 where neither is given) and b of the guess y_q = <v, x_q> + b."""

    guess_vector: Vector = None
    guess_vector_norm: float | None = None
    guess_bias: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        unsaid = self.guess_vector is None and self.guess_vector_norm is None
        norm = 1.0 if unsaid else self.guess_vector_norm
        guess = vector_or_norm("check.guess_vector", self.guess_vector, norm, self.dim)
        self.guess_D = torch.tensor(guess, dtype=torch.float64)
        self.guess_bias = real("check.guess_bias", self.guess_bias)
        bounded("check.guess_vector", float(self.guess_D.norm()))
        bounded("check.guess_bias", abs(self.guess_bias))


def risk_under(law: LinearRegressionLaw) -> QuadraticRisk:
    """Return the exact risk of one layer of linear attention."""
    return QuadraticRisk.linear_regression(**law.risk_arguments())
