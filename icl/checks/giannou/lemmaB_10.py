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

from icl.checks.giannou.support.inexact_newton import largest_iterate, least_growth
from icl.checks.giannou.support.one_step import OF_CONSTANT, beyond, constant_of, numbers_of_bounds, units
from icl.checks.giannou.support.problems import LogisticProblems
from icl.checks.numbers import Numbers, exact, finding, tried
from icl.checks.settings import integer
from icl.checks.verdict import Control, Finding
from icl.random import generator
from icl.theory.logistic import LogisticLoss

STARTS = (0.0, 0.1, 0.5, 1.0)  # |x_0| as shares of C
TOO_LARGE = 3.0  # a step shortens x by 2 at most: outward errors of this norm win for every mu
REMARKS = [
    "The lemma depends on Lemma B.9. It is true for mu < sqrt(2): C = max(|x_0|, C_1) is valid for every "
    "problem, with the C_1 computed here (constant). For mu > sqrt(2), outward errors of norm mu^2 exceed "
    "the 2 by which a step shortens x, and far out |x_t| grows by about mu^2 - 2 in each step.",
]


@dataclass(eq=False)
class LemmaB10(LogisticProblems):
    """Settings: size of the random problems, mu, `steps` of each sequence, number of problems, seed."""

    reference = "Lemma B.10"
    claim = (
        "For every mu > 0 the iterates of damped Newton with errors |eps_t| <= mu^2 are bounded, |x_t| <= "
        "C, by a constant C that depends on mu."
    )

    mu: float = 2.0
    steps: int = integer(200, 2, 10_000)
    samples: int = integer(64, 1, 10_000)

    def measure(self) -> Finding:
        rng, constant = generator(self.seed, "check"), constant_of(self.mu, self.mu**2)
        loss = self.losses(rng, self.samples)
        x_BD = units(torch.from_numpy(rng.standard_normal((self.samples, self.dim))))
        points = (x_BD, 100 * (constant or beyond(self.mu, TOO_LARGE)) * x_BD)
        # A wrong step or bound does not refute the lemma where there is no C.
        otherwise = "undecided" if constant is None else "fails"
        claim = self._growth(loss, x_BD) if constant is None else self._largest(loss, x_BD, constant)
        far_BD = beyond(self.mu, TOO_LARGE) * x_BD
        wrong, rounded = least_growth(loss, far_BD, self.steps, TOO_LARGE)
        return finding(
            [
                claim.provided(*numbers_of_bounds(loss, x_BD, points, constant, otherwise)),
                exact(limit_of_growth=float(Fraction(self.mu) ** 2 - 2))
                .means("limit mu^2 - 2 of the growth in a step")
                .compared_by("outside_bounds", "steps on drawn problems, far out, within their bounds"),
                exact(constant=constant)
                .means("constant C for mu < sqrt(2)")
                .compared_by("outside_bounds" if constant is None else "constant_off", OF_CONSTANT),
            ],
            Control(
                "the least growth of |x_t| in a step, starting far out, with outward errors of norm "
                f"{TOO_LARGE:g}",
                wrong,
                wrong > rounded,
            ),
            notes=["The errors are outward, inward or random, and have norm mu^2 in every step."],
            remarks=REMARKS,
        )

    def _largest(self, loss: LogisticLoss, x_BD: Tensor, constant: float) -> Numbers:
        """Return the largest |x_t| over C, mu < sqrt(2), with every error from every start."""
        largest = [
            largest_iterate(loss, start * constant * x_BD, self.steps, generator(self.seed, "check", 1))
            for start in STARTS
        ]
        source = "the explicit constant, from bounds on one step"
        return (
            tried(largest_over_constant=max(largest) / constant)
            .means("largest |x_t| over all sequences, as a share of the constant C")
            .at_most(1.0, source)
        )

    def _growth(self, loss: LogisticLoss, x_BD: Tensor) -> Numbers:
        """Return the growth for mu > sqrt(2): every step from `beyond` on must lengthen x, by an amount that
        does not shrink."""
        radius = beyond(self.mu, self.mu**2)
        least, rounded = least_growth(loss, radius * x_BD, self.steps, self.mu**2)
        verdict = "fails" if least > rounded else "undecided"
        source = "rounding of a step; positive growth excludes any C"
        claim = (
            tried(least_growth_in_a_step=least)
            .means("least growth of |x_t| in a step, over problems, with outward errors of norm mu^2")
            .judged(verdict, "<", rounded, source)
        )
        return Numbers(
            [
                *claim,
                *exact(from_norm=radius)
                .means("norm of x_0, from which the growth is measured")
                .by_definition(),
            ]
        )
