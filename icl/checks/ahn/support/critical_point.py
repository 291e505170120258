"""The evidence on which Theorems 3 and 4 of ahn rest alike.

At every point of S the gradients are multiples of Sigma and I (directions); at a critical one they are 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import torch

from icl.checks import sequential
from icl.checks.ahn.support.orbits import Deviation, Error
from icl.checks.rounding import ROUNDING
from icl.checks.sequential import Comparison
from icl.checks.verdict import Bound, Control, decide
from icl.tasks import LinearRegressionLaw

BLIND = 0.05  # relative: a sample that would not see an error of this size says nothing
KINDS = {  # of the evidence, beside what is exact
    **dict.fromkeys(("off_direction", "derivative_error", "attention_error", "paths_error"), "tried"),
    **sequential.KINDS,
}
USELESS = 0.01  # a relative rounding bound above which nothing was measured


class Held(NamedTuple):
    """A measured number, the bound it was held against, and what came of it."""

    measured: float
    bound: Bound
    verdict: str
    beside: Mapping[str, Any] = MappingProxyType({})  # what else is told of it

    @property
    def entries(self) -> dict[str, Any]:
        return {self.bound.of: self.measured, f"{self.bound.of}_bound": self.bound.value, **self.beside}


def held(of: str, measured: float, bound: float, source: str) -> Held:
    return Held(measured, Bound(bound, source, of), decide(measured, bound))


def relative(of: str, error: Error, source: str) -> Held:
    """A relative error; undecided where rounding could hide any such error at all."""
    verdict = decide(error.value, error.bound)
    if verdict == "holds" and not error.blind < USELESS:
        verdict = "undecided"
    return Held(error.value, Bound(error.bound, source, of), verdict)


def directions(deviation: Deviation) -> list[Held]:
    source = "rounding: 64 eps times the gradient with all terms made positive over the gradient"
    return [
        relative("off_direction", deviation.off_direction, source),
        relative("derivative_error", deviation.derivative_error, source),
    ]


def gradient_norm(size: float, bound: float) -> Held:
    source = "rounding: 64 eps times the gradient with all terms made positive"
    return held("gradient_norm", size, bound, source)


def value(of: str, error: float, bound: float) -> Held:
    """A relative error of the risk at a point of S."""
    source = "rounding: 64 eps times the condition number of q at its factors, |a_l dq/da_l| over |q|"
    return relative(of, Error(error, bound, bound, error), source)


def sampled_directions(found: Comparison | None, rounding: float) -> list[Held]:
    """Nothing to test at dim 1; undecided where the gradients are made of rounding."""
    if found is None:
        return []
    verdict = found.verdict if rounding < USELESS else "undecided"
    return [Held(found.z, found.condition("sampled")[1], verdict)]


def attention(error: Error) -> Held:
    source = "rounding: 64 eps cond(Sigma) times the loss that the sizes of all factors allow, over the loss"
    return relative("attention_error", error, source)


def paths(error: float, bound: float) -> Held:
    source = "rounding: 2^-52 times a prediction's additions and products, as a share of its terms"
    return held("paths_error", error, bound, source)


def tokens(found: Comparison, context: int) -> Held:
    """Undecided where the sample is too small to tell."""
    sees = float(found.sees_K.max())
    verdict = "undecided" if found.verdict == "holds" and not sees < BLIND else found.verdict
    sample = {"tokens_sees": sees, "tokens_samples": found.samples, "tokens_context": context}
    return Held(found.z, found.condition("tokens")[1], verdict, sample)


def task_covariance(law: LinearRegressionLaw) -> Held:
    """Is w ~ N(0, Sigma^{-1}), that is, root^T w ~ N(0, I)? All else is asked of whitened prompts."""
    V_DD = law.root_RDD[0].mT @ law.task_root_RDD[0]
    error = float(torch.linalg.matrix_norm(V_DD @ V_DD.mT - torch.eye(law.dim, dtype=torch.float64), 2))
    bound = ROUNDING * float(torch.linalg.cond(law.root_RDD[0]))
    source = "rounding: 64 eps times the condition number of Sigma's root"
    return relative("task_covariance_error", Error(error, bound, bound, error), source)


def control(off: Deviation | None, at: str, shifted: tuple[float, float]) -> Control:
    """Off S directions must be others; with A a tenth too large the gradient, `shifted`, must not be 0."""
    moved = decide(*shifted) == "fails"
    if off is None:
        text = "gradient norm on S at a tenth too large A (no point is off S at dim 1)"
        return Control(text, shifted[0], moved)
    return Control(
        f"off_direction off S, at {at} with A_0 doubled along one whitened axis; "
        f"also gradient norm {shifted[0]:.2g} on S at a tenth too large A",
        off.off_direction.largest,
        moved and directions(off)[0].verdict == "fails",
    )
