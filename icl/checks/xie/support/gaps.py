"""The gap between multi-head LSA and one gradient step at many laws, as errors that are shares of rounding.

D covariates, C = `context` tokens; y_q = <v, x_q> + b.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from icl.checks.sequential import Comparison
from icl.checks.xie.support import tokens
from icl.checks.xie.support.initial_guess import xie_law
from icl.checks.xie.support.saturation import BLUR, Saturation
from icl.checks.xie.support.tokens import GuessLayer, Quantity
from icl.tasks import LinearRegressionLaw
from icl.theory.xie.initial_guess import gap_slope, gd_risk

SCALES = (0.0, 0.25, 0.5, 0.75, 1.0)  # of w*, v and b as given, or of such of size 1 where they are smaller
GRID_DIMS, GRID_CONTEXTS = (1, 2, 3, 5), (1, 2, 7, 40)  # beside the settings' own


def line(law: LinearRegressionLaw) -> list[Saturation]:
    """Return the same law with w*, v and b scaled."""
    return [Saturation(_scaled(law, scale * _enlarging(law))) for scale in SCALES]


def grid(dim: int, context: int, rng: np.random.Generator) -> list[Saturation]:
    """Random w*, v and b together at every (d, C)."""
    dims, contexts = ({*GRID_DIMS, dim}, {*GRID_CONTEXTS, context})
    return [
        Saturation(
            xie_law(
                d,
                C,
                prior_mean=rng.standard_normal(d).tolist(),
                guess_vector=rng.standard_normal(d).tolist(),
                guess_bias=float(rng.standard_normal()),
            )
        )
        for d in sorted(dims)
        for C in sorted(contexts)
    ]


def gaps_on_tokens(laws: Sequence[LinearRegressionLaw], rng: np.random.Generator) -> Comparison:
    """Compare the gaps, of w*, v or b of size 1 at least, with prompts drawn as tokens."""
    cases = [Saturation(tokens.cut(_scaled(law, _enlarging(law)))) for law in laws]
    quantities = [
        Quantity(
            [GuessLayer(case.law, case.heads()), GuessLayer(*case.step(), -1.0)], case.gap, case.rounding
        )
        for case in cases
    ]
    return tokens.compare_with_tokens(quantities, rng)


def slopes(case: Saturation) -> dict[str, float]:
    """Return the gap, and its slope in |w* - v|^2 + b^2 as measured and by the closed form."""
    return {
        "gap": case.gap,
        "slope": case.gap / case.guess_error,
        "predicted_slope": gap_slope(case.dim, case.context),
    }


def relative_error(case: Saturation) -> float:
    """Relative error of the closed form of the gap."""
    return abs(case.gap / (gap_slope(case.dim, case.context) * case.guess_error) - 1)


def share(case: Saturation, slope: float | None = None) -> float:
    """Error of the closed form of the gap, or of one with another slope, as a share of rounding."""
    slope = gap_slope(case.dim, case.context) if slope is None else slope
    error = abs(case.gap - slope * case.guess_error)
    return error and error / case.gap_rounding


def blurred_share(case: Saturation) -> float:
    """`share` with a slope that is off by BLUR."""
    return share(case, (1 + BLUR) * gap_slope(case.dim, case.context))


def share_of_risks(case: Saturation) -> float:
    """Return the errors of the step's closed form and of the risks' difference, as shares of rounding."""
    error = abs(case.descent_risk - gd_risk(case.dim, case.context))
    return max(error, case.risks_error) / case.rounding


def _enlarging(law: LinearRegressionLaw) -> float:
    """Return the factor that brings smaller w*, v or b to size 1, where a difference of risks resolves it."""
    return 1 / min(1.0, max(float(law.mean_RD.norm()), float(law.guess_RD.norm()), abs(law.guess_bias)))


def _scaled(law: LinearRegressionLaw, scale: float) -> LinearRegressionLaw:
    return replace(
        law,
        mean_RD=scale * law.mean_RD,
        guess_RD=scale * law.guess_RD,
        guess_bias=scale * law.guess_bias,
    )
