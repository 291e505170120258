"""The answer of a check: the claim, the measurement, its bound, and the control that was rejected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from torch import Tensor

from icl import quantiles
from icl.constructions.account import Account
from icl.errors import one_of
from icl.tasks import Law, LinearRegressionLaw
from icl.tasks.linear_regression import linear_regression
from icl.verdicts import KINDS, ROUTES, VERDICTS

CONFIDENCE = 0.999  # of every interval that decides
QUANTILE = quantiles.normal((1 - CONFIDENCE) / 2)  # standard errors to either side of a mean of many draws


@dataclass(frozen=True)
class Bound:
    """The number that a measurement is compared with, and its source (rounding, or a confidence interval).

    `of` names the measurement, a key of the finding's `measured`; `direction` says on which side of the
    bound the claim puts it, so that a table reads `gradient_norm 3e-15 < 2e-13`.
    """

    value: float
    source: str
    of: str
    direction: str = "<"

    def __post_init__(self) -> None:
        one_of("direction", self.direction, ("<", ">"))


@dataclass(frozen=True)
class Control:
    """Something the check must reject, and by how much it did."""

    description: str
    measured: float
    rejected: bool


@dataclass(frozen=True)
class Route:
    """A second computation of a number, independent of the first, and how near it comes.

    `value` is what it gives; `off` is the relative difference or, with `unit` "standard errors", that many of
    them, the largest over the entries of a table; they agree if it is at most `within`. `by` names the number
    that compares the two, where the check has one.
    """

    how: str  # see icl.verdicts.ROUTES
    name: str = ""
    value: Any = None
    off: float | None = None
    unit: str = ""
    within: float | None = None
    agrees: bool | None = None
    by: str = ""

    def __post_init__(self) -> None:
        one_of("how", self.how, list(ROUTES))


@dataclass(frozen=True)
class Finding:
    """The result of a check's `measure`, to which its claim, settings and seconds are added."""

    verdict: str
    measured: Mapping[str, Any]
    bound: Bound
    control: Control
    notes: Sequence[str] = ()  # how it was measured
    remarks: Sequence[str] = ()  # what was found about the paper's own text
    details: Account | None = None  # the construction, layer by layer, for who asks to see more
    # of a measured number: exact | tried | searched | sampled | projected, see icl.verdicts.KINDS
    kinds: Mapping[str, str] = field(default_factory=dict)
    meanings: Mapping[str, str] = field(default_factory=dict)  # of a measured number, in one line
    bounds: Mapping[str, Bound] = field(default_factory=dict)  # of every measured number that decides
    routes: Mapping[str, Route] = field(default_factory=dict)  # the second routes of measured numbers

    def __post_init__(self) -> None:
        one_of("verdict", self.verdict, VERDICTS)
        for name, kind in self.kinds.items():
            one_of(f"kinds.{name}", kind, list(KINDS))
            if name not in self.measured:
                raise ValueError(f"kinds.{name}: is none of what was measured")
        if self.bound.of not in self.measured:
            raise ValueError(f"bound.of={self.bound.of}: is none of what was measured")
        if self.verdict != "undecided" and not self.control.rejected:
            object.__setattr__(self, "verdict", "undecided")
            object.__setattr__(self, "notes", [*self.notes, "undecided: the control was not rejected"])
        for name, route in self.routes.items():
            if route.how == "computed" and not route.agrees:
                told = f"{name} and the same by {route.name} differ by {route.off:.3g} ({route.unit})"
                object.__setattr__(self, "verdict", "undecided")
                object.__setattr__(
                    self, "notes", [f"undecided: {told}, more than {route.within:.3g}", *self.notes]
                )


@dataclass(frozen=True)
class Weights:
    """Weights to be judged: matrices with a leading seed axis, their family and the law they saw."""

    family: str
    matrices: Mapping[str, Tensor]
    law: Law
    activation: str = "identity"

    def regression(self, statement: str) -> LinearRegressionLaw:
        """Return their law, for a statement on linear regression with Gaussian prompts."""
        return linear_regression(self.law, f"check.weights: {statement}")


class Check(Protocol):
    """One statement of a paper. The constructor takes the settings and refuses impossible ones."""

    reference: ClassVar[str]
    claim: ClassVar[str]

    def measure(self) -> Finding: ...


class JudgesWeights(Protocol):
    """A check that can also judge given weights. `claim_of_weights` is its claim about them, where that
    differs from `claim`."""

    def judge(self, weights: Weights) -> Finding: ...
