"""Settings of the checks of one layer applied many times, and the law of the prompts that they name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from icl.checks.settings import integer, law_of, validate
from icl.theory.looped.equal_steps import EqualSteps
from icl.theory.looped.plane import PlaneRisk

MAX_DIM = 20
MAX_LAYERS = 8
DEEP = "products of two traces of degree 16 take minutes"
WIDE = "a search on draws takes minutes"


@dataclass(eq=False)
class LoopedSettings:
    """Dimension, context length, loops (`layers`), eigenvalues or covariance Sigma of x, seed of draws."""

    dim: int = integer(2, 1, MAX_DIM, WIDE)
    context: int = integer(20, 1)
    layers: int = integer(4, 1, MAX_LAYERS, DEEP)
    eigenvalues: Sequence[float] | None = None
    covariance: Sequence[Sequence[float]] | str | None = None
    seed: int = integer(0, 0)

    def __post_init__(self) -> None:
        validate(self)
        given = {"eigenvalues": self.eigenvalues, "covariance": self.covariance}
        self.law = law_of(self.dim, self.context, self.seed, **given, task_covariance="inverse")

    @cached_property
    def steps(self) -> EqualSteps:
        return EqualSteps(self.dim, self.context, self.layers)

    @cached_property
    def plane(self) -> PlaneRisk:
        return PlaneRisk(self.context, self.layers)
