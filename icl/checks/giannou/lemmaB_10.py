"""giannou, Lemma B.10: damped Newton steps with errors |eps_t| <= mu^2 stay within a constant C of 0.

The bounds of one_step on |x'| - |x| tend to mu^2 - 2 from both sides: for mu < sqrt(2) they give an explicit
C, for mu > sqrt(2) growth without end.
B sequences, D covariates.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import torch
from torch import Tensor

from icl.checks.giannou.support.logistic_rounding import step_off
from icl.checks.giannou.support.one_step import (
    bend_off,
    beyond,
    constant_of,
    constant_off,
    growth,
    outside_bounds,
    units,
)
from icl.checks.giannou.support.problems import LogisticProblems
from icl.checks.verdict import Bound, Condition, Control, Finding, at_most, combine, decide
from icl.errors import whole
from icl.random import generator
from icl.theory.logistic import LogisticLoss
from icl.theory.quadratic import EPSILON

STARTS = (0.0, 0.1, 0.5, 1.0)  # |x_0| as shares of C
TOO_LARGE = 3.0  # a step shortens x by 2 at most: outward errors of this norm win for every mu
REMARKS = [
    "The lemma rests on B.9 and is true for mu < sqrt(2), where C = max(|x_0|, C_1) with the C_1 measured "
    "here as `constant` serves every problem. For mu > sqrt(2) outward errors of norm mu^2 win over the 2 "
    "by which a step shortens x, and |x_t| grows by about mu^2 - 2 a step from far out on.",
]


@dataclass(eq=False)
class LemmaB10(LogisticProblems):
    """Settings: size of the random problems, mu, `steps` of each sequence, number of problems, seed."""

    reference = "Lemma B.10"
    claim = (
        "For every mu > 0 iterates with errors |eps_t| <= mu^2 stay within a constant C that depends on mu."
    )

    mu: float = 2.0
    steps: int = 200
    samples: int = 64

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("check.steps", self.steps, 2, 10_000)
        whole("check.samples", self.samples, 1, 10_000)

    def measure(self) -> Finding:
        error = self.mu**2
        constant, loss, x_BD = constant_of(self.mu, error), *self._problems()
        far = 100 * (constant or beyond(self.mu, TOO_LARGE)) * x_BD
        measured: dict[str, Any] = {
            "limit_of_growth": float(Fraction(self.mu) ** 2 - 2),
            "constant": constant,
            "outside_bounds": max(outside_bounds(loss, at_BD) for at_BD in (x_BD, far)),
            "step_off": step_off(loss, x_BD),
            "bend_off": bend_off(),
        }
        sound = [
            at_most("step_off", measured["step_off"], 1.0, "rounding, of the step in two ways"),
            at_most("outside_bounds", measured["outside_bounds"], 1.0, "rounding of a step"),
            at_most("bend_off", measured["bend_off"], 1e-8, "the grid's spacing, 1e-4, squared"),
        ]
        if constant is None:
            main = self._without_constant(error, measured)
        else:
            share = max(self._largest(start * constant, error) for start in STARTS) / constant
            measured["largest_over_constant"] = share
            measured["constant_off"] = constant_off(self.mu, error, constant)
            main = (
                decide(share, 1.0),
                Bound(1.0, "the explicit C, from bounds on one step", "largest_over_constant"),
            )
            rounding = 16 * EPSILON
            sound.append(at_most("constant_off", measured["constant_off"], rounding, "rounding: 16 * 2^-52"))
        verdict, bound = combine(sound)
        if verdict == "holds":
            verdict, bound = combine([main])
        elif constant is None:
            verdict = "undecided"  # what is wrong is not the lemma
        wrong, rounded = self._growth(beyond(self.mu, TOO_LARGE), TOO_LARGE)
        return Finding(
            verdict,
            measured,
            bound,
            Control(
                f"least growth of |x_t| in a step, from far out, with outward errors of norm {TOO_LARGE:g}",
                wrong,
                wrong > rounded,
            ),
            notes=["Errors outward, inward and at random, each of the full norm mu^2 at every step."],
            remarks=REMARKS,
            kinds={
                "*": "tried",
                **dict.fromkeys(("limit_of_growth", "constant*", "bend_off", "from_norm"), "exact"),
            },
        )

    def _without_constant(self, error: float, measured: dict[str, Any]) -> Condition:
        """mu > sqrt(2): every step from `beyond` on must lengthen x, by an amount that does not shrink."""
        measured["from_norm"] = radius = beyond(self.mu, error)
        measured["least_growth_in_a_step"], rounded = self._growth(radius, error)
        bound = Bound(rounded, "rounding of a step: a positive growth leaves no C", "least_growth_in_a_step")
        return "fails" if measured["least_growth_in_a_step"] > rounded else "undecided", bound

    def _growth(self, radius: float, error: float) -> tuple[float, float]:
        """The least |x'| - |x| over problems and steps, errors outward; what rounding can make of it."""
        loss, x_BD = self._problems()
        x_BD, least, rounded = radius * x_BD, float("inf"), 0.0
        for _ in range(self.steps):
            growth_B, rounding_B = growth(loss, x_BD)
            least = min(least, float(growth_B.min()) + error)
            rounded = max(rounded, float(rounding_B.max()) + EPSILON * error)
            x_BD = loss.damped_step(x_BD)
            x_BD = x_BD + error * units(x_BD)
        return least, rounded

    def _largest(self, radius: float, error: float) -> float:
        """The largest |x_t|, t >= 1, over problems and all errors, from |x_0| = radius."""
        largest = 0.0
        for direction in ("outward", "inward", "random"):
            rng = generator(self.seed, "check", 1)
            loss, x_BD = self._problems()
            x_BD = radius * x_BD
            for _ in range(self.steps):
                x_BD = loss.damped_step(x_BD)
                aim_BD = torch.from_numpy(rng.standard_normal(x_BD.shape)) if direction == "random" else x_BD
                x_BD = x_BD + (-error if direction == "inward" else error) * units(aim_BD)
                largest = max(largest, float(x_BD.norm(dim=1).max()))
        return largest

    def _problems(self) -> tuple[LogisticLoss, Tensor]:
        """Random problems, and a point of norm 1 for each."""
        rng = generator(self.seed, "check")
        loss = self.losses(rng, self.samples)
        return loss, units(torch.from_numpy(rng.standard_normal((self.samples, self.dim))))
