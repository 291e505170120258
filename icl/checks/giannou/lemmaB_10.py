"""giannou, Lemma B.10: damped Newton steps with errors |eps_t| <= mu^2 stay within a constant C of 0.

The bounds of one_step on |x'| - |x| tend to mu^2 - 2 from both sides: for mu < sqrt(2) they give an explicit
C, for mu > sqrt(2) growth without end.
B sequences, D covariates.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import torch
from torch import Tensor

from icl.checks.giannou.support.one_step import beyond, constant_of, growth, numbers_of_bounds, units
from icl.checks.giannou.support.problems import LogisticProblems
from icl.checks.numbers import Numbers, exact, finding, tried
from icl.checks.settings import integer
from icl.checks.verdict import Control, Finding
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
    steps: int = integer(200, 2, 10_000)
    samples: int = integer(64, 1, 10_000)

    def measure(self) -> Finding:
        constant, loss, x_BD = constant_of(self.mu, self.mu**2), *self._problems()
        points = (x_BD, 100 * (constant or beyond(self.mu, TOO_LARGE)) * x_BD)
        # A wrong step or bound does not refute the lemma where there is no C.
        otherwise = "undecided" if constant is None else "fails"
        claim = self._growth_without_end() if constant is None else self._largest_over(constant)
        wrong, rounded = self._growth(beyond(self.mu, TOO_LARGE), TOO_LARGE)
        return finding(
            [
                claim.provided(*numbers_of_bounds(loss, x_BD, points, constant, otherwise)),
                exact(limit_of_growth=float(Fraction(self.mu) ** 2 - 2), constant=constant),
            ],
            Control(
                f"least growth of |x_t| in a step, from far out, with outward errors of norm {TOO_LARGE:g}",
                wrong,
                wrong > rounded,
            ),
            notes=["Errors outward, inward and at random, each of the full norm mu^2 at every step."],
            remarks=REMARKS,
        )

    def _largest_over(self, constant: float) -> Numbers:
        """Return the largest |x_t| over C, mu < sqrt(2)."""
        share = max(self._largest(start * constant, self.mu**2) for start in STARTS) / constant
        source = "the explicit C, from bounds on one step"
        return tried(largest_over_constant=share).at_most(1.0, source)

    def _growth_without_end(self) -> Numbers:
        """Return the growth for mu > sqrt(2): every step from `beyond` on must lengthen x, by an amount that
        does not shrink."""
        radius = beyond(self.mu, self.mu**2)
        least, rounded = self._growth(radius, self.mu**2)
        verdict = "fails" if least > rounded else "undecided"
        source = "rounding of a step: a positive growth leaves no C"
        claim = tried(least_growth_in_a_step=least).judged(verdict, "<", rounded, source)
        return Numbers([*claim, *exact(from_norm=radius)])

    def _growth(self, radius: float, error: float) -> tuple[float, float]:
        """Return the least |x'| - |x| over problems and steps, errors outward, and what rounding can make of
        it."""
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
        """Return the largest |x_t|, t >= 1, over problems and all errors, from |x_0| = radius."""
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
        """Draw problems, and a point of norm 1 for each."""
        rng = generator(self.seed, "check")
        loss = self.losses(rng, self.samples)
        return loss, units(torch.from_numpy(rng.standard_normal((self.samples, self.dim))))
