"""The xie paper's setting: x ~ N(0, I), w ~ N(w*, I), labels without noise, the query token (x_q, y_q) with
y_q = <v, x_q> + b, and the prediction its last entry.

Risk (4) is E (prediction - <w, x_q>)^2, exact here for one layer with any heads. D covariates, C = `context`.
"""

from __future__ import annotations

from collections.abc import Sequence

from icl.checks.settings import law_of, limited
from icl.tasks import LinearRegressionLaw
from icl.theory.quadratic import QuadraticRisk

MAX_DIM = 40
TOO_LARGE = "the fourth moments take (dim + 1)^4 numbers, and their spectrum (dim^2 / 2)^3 operations"
Vector = Sequence[float] | None


def setting(
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
    """The law of these settings, each named `check.` in what is refused."""
    limited("check.dim", dim, 1, MAX_DIM, TOO_LARGE)
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


def law_around(
    dim: int, context: int, seed: int, prior_mean: Vector, prior_mean_norm: float | None
) -> LinearRegressionLaw:
    """The law of the xie paper; w* is all ones where neither setting says otherwise."""
    limited("check.dim", dim, 1, MAX_DIM, TOO_LARGE)
    ones = [1.0] * dim if prior_mean is None and prior_mean_norm is None else prior_mean
    return setting(dim, context, seed, prior_mean=ones, prior_mean_norm=prior_mean_norm)


def risk_under(law: LinearRegressionLaw) -> QuadraticRisk:
    """The exact risk of one layer of linear attention."""
    return QuadraticRisk.linear_regression(**law.risk_arguments())
