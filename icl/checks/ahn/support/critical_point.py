"""The evidence on which Theorems 3 and 4 of ahn rest alike.

At every point of S the gradients are multiples of Sigma and I (directions); at a critical one they are 0.
"""

from __future__ import annotations

import torch

from icl.checks.ahn.support.orbits import Deviation
from icl.checks.numbers import Numbers, exact, sampled, tried
from icl.checks.rounding import ROUNDING
from icl.checks.sequential import Comparison
from icl.checks.verdict import Control
from icl.tasks import LinearRegressionLaw
from icl.verdicts import decide

RATIONAL_BOUND = "the rational lower bound of the risk on S, which the optimum attains"
BLIND = 0.05  # relative: a sample that would not see an error of this size says nothing
USELESS = 0.01  # a relative rounding bound above which nothing was measured
GRADIENT = "rounding: 64 eps times the gradient with all terms made positive"
VALUE = "rounding: 64 eps times the condition number of q at its factors, |a_l dq/da_l| over |q|"
ATTENTION = "rounding: 64 eps cond(Sigma) times the loss that the sizes of all factors allow, over the loss"
PATHS = "rounding: 2^-52 times a prediction's additions and products, as a share of its terms"


def relative(error: Numbers, bound: float, source: str, least_bound: float | None = None) -> Numbers:
    """Compare a relative error; undecided where rounding could hide any such error at all."""
    blind = bound if least_bound is None else least_bound
    return error.at_most(bound, source).holds_only_if(blind < USELESS).with_bounds()


def directions(deviation: Deviation) -> list[Numbers]:
    """Return numbers that compare gradients on S with multiples of Sigma and I of the spectrum's size."""
    off, size = deviation.off_direction, deviation.derivative_error
    source = f"{GRADIENT} over the gradient"
    return [
        relative(
            tried(off_direction=off.value).means(
                "part of a gradient at points of S that is no multiple of Sigma (of I for B), as a share "
                "of it"
            ),
            off.bound,
            source,
            off.blind,
        ),
        relative(
            tried(derivative_error=size.value).means(
                "difference of a gradient's size at points of S from the polynomial's derivative, relative"
            ),
            size.bound,
            source,
            size.blind,
        ),
    ]


def gradient_norm(size: float, bound: float) -> Numbers:
    """Compare the gradient at a critical point with 0; it is exact."""
    return Numbers(
        [
            *exact(gradient_norm=size)
            .means("norm of the gradient of the exact risk at the critical point")
            .compared_by("derivative_error", "derivative of the polynomial, at other points of S")
            .at_most(bound, GRADIENT)
            .with_bounds(),
            *exact(gradient_norm_stderr=0.0),
        ]
    )


def sampled_directions(comparison: Comparison | None, rounding: float) -> list[Numbers]:
    """Return the same numbers from samples: none at dim 1, undecided where gradients are mere rounding."""
    if comparison is None:
        return []
    return [
        comparison.decides("sampled_z", "0, the expected off-direction part,")
        .decides_only_if(rounding < USELESS)
        .with_bounds()
    ]


def on_tokens(comparison: Comparison, context: int) -> Numbers:
    """Judge z-scores over token prompts: undecided where the sample is too small to tell."""
    sees = float(comparison.sees_K.max())
    return Numbers(
        [
            *comparison.decides("tokens_z", "the exact risk").holds_only_if(sees < BLIND).with_bounds(),
            *sampled(tokens_sees=sees).means(
                "relative error of the exact risk that a sample of this size detects 39 times out of 40"
            ),
            *exact(tokens_samples=comparison.samples, tokens_context=context).means(
                tokens_samples="number of prompts of the last round",
                tokens_context="context length of the prompts that are drawn as tokens",
            ),
        ]
    )


def task_covariance(law: LinearRegressionLaw) -> Numbers:
    """Test that w ~ N(0, Sigma^{-1}), that is, root^T w ~ N(0, I): all else is of whitened prompts."""
    V_DD = law.root_RDD[0].mT @ law.task_root_RDD[0]
    error = float(torch.linalg.matrix_norm(V_DD @ V_DD.mT - torch.eye(law.dim, dtype=torch.float64), 2))
    bound = ROUNDING * float(torch.linalg.cond(law.root_RDD[0]))
    source = "rounding: 64 eps times the condition number of Sigma's root"
    return relative(
        exact(task_covariance_error=error)
        .means("spectral norm of the covariance of Sigma^1/2 w minus I")
        .compared_by("tokens_z", "Monte Carlo on tokens, with tasks of this covariance"),
        bound,
        source,
    )


def control(off: Deviation | None, at: str, shifted: tuple[float, float]) -> Control:
    """Require another direction off S, and a gradient, `shifted`, that is not 0 with A a tenth too large."""
    moved = decide(*shifted) == "fails"
    if off is None:
        text = "gradient norm on S with every A a tenth too large; at dim 1 every point is on S"
        return Control(text, shifted[0], moved)
    return Control(
        f"the off-direction part off S, at {at} with A_0 doubled along one whitened axis; and the gradient "
        f"norm on S with every A a tenth too large, {shifted[0]:.2g}",
        off.off_direction.largest,
        moved and directions(off)[0].verdict == "fails",
    )
