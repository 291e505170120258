"""giannou, Lemma B.9: far from 0 a damped Newton step with an error |eps| <= mu^2 does not lengthen x.

For |x| -> infinity H -> mu I and grad f ~ mu x, so lambda_f ~ sqrt(mu) |x| and the step is 2 / (2 + |x|) x:
it shortens x by 2, whatever mu. An outward error of mu^2 lengthens it again by mu^2, more for mu > sqrt(2).
The bounds of one_step make that a proof on both sides: an explicit C, or growth from some |x| on.
B problems, D covariates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import torch

from icl.checks.giannou.support.one_step import (
    OF_CONSTANT,
    beyond,
    constant_of,
    growth,
    numbers_of_bounds,
    outside_bounds,
    units,
)
from icl.checks.giannou.support.problems import LogisticProblems
from icl.checks.numbers import exact, finding, tried
from icl.checks.settings import integer
from icl.checks.verdict import Control, Finding
from icl.random import generator

RADII = (1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6)  # in units of the radius that the bounds on one step give
REMARKS = [
    "The proof bounds mu x^T H^{-1} x from below by mu^2 |x|^2. H <= (1 + mu) I gives only mu / (1 + mu) "
    "|x|^2, which is smaller if mu (1 + mu) > 1. The lemma is true for mu < sqrt(2), where the 2 by which "
    "a step shortens x exceeds mu^2, and false for mu > sqrt(2). For every mu, errors below 2 are "
    "admissible.",
    "Lemma B.10 depends on this lemma: with errors of mu^2 > 2 the iterates can grow without bound. "
    "Theorem 5.4 assumes errors of at most .01 and is not affected.",
]


@dataclass(eq=False)
class LemmaB9(LogisticProblems):
    """Settings: size of the random problems, mu, number of problems (`samples`), seed."""

    reference = "Lemma B.9"
    claim = (
        "For every mu > 0 there is a constant C such that a damped Newton step with an error |eps| <= "
        "mu^2 from any x with |x| >= C has |x'| <= |x|."
    )

    mu: float = 2.0
    samples: int = integer(64, 1, 10_000)

    def measure(self) -> Finding:
        rng, error = generator(self.seed, "check"), self.mu**2
        loss = self.losses(rng, self.samples)
        x_BD = units(torch.from_numpy(rng.standard_normal((self.samples, self.dim))))
        constant = constant_of(self.mu, error)
        radius = beyond(self.mu, error) if constant is None else constant
        radii = [share * (radius if math.isfinite(radius) else 1 / self.mu) for share in RADII]
        growths = [float((growth(loss, r * x_BD)[0] + error).max()) for r in radii]
        half = outside_bounds(loss, radii[-1] * x_BD, 0.5)
        # The bounds on one step tend to the limit from both sides: its sign decides, if the bounds are right.
        claim = (
            exact(limit=float(Fraction(self.mu) ** 2 - 2))
            .means("limit mu^2 - 2 of the growth |x'| - |x| far out")
            .compared_by("outside_bounds", "steps on drawn problems, far out, within their bounds")
            .at_most(0.0, "the claim; bounds from both sides give the limit")
        )
        points = [r * x_BD for r in radii]
        return finding(
            [
                claim.provided(*numbers_of_bounds(loss, x_BD, points, constant, otherwise="undecided")),
                exact(constant=constant, **{"constant_off": None} if constant is None else {})
                .means(constant="constant C for mu < sqrt(2)")
                .compared_by("outside_bounds" if constant is None else "constant_off", OF_CONSTANT),
                exact(radii=radii).means("norms of x at which the growth is measured").by_definition(),
                tried(
                    growth_far_out=growths[-1],
                    growth_by_radius=growths,
                    growth_without_error=[largest - error for largest in growths],
                ).means(
                    growth_far_out="growth |x'| - |x| at the largest norm, the largest over problems",
                    growth_by_radius="largest growth over problems, by norm of x",
                    growth_without_error="largest growth without the error, by norm of x",
                ),
            ],
            Control("the distance of half a step from its bounds, in units of rounding", half, half > 1),
            notes=[
                "The growth |x'| - |x| is measured with an error of norm mu^2 along the result of the "
                "step. The verdict rests on the bounds of one step, which are proved for every problem.",
                "For mu < sqrt(2) these bounds give an explicit C (constant).",
            ],
            remarks=REMARKS,
        )
