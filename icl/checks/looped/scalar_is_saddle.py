"""looped: the second derivative of the risk at the best multiple of Sigma^-1, exact in any dimension.

Along every antisymmetric direction it is the same number, a polynomial in a (icl.theory.looped.equal_steps).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from icl.checks.looped.support import second_route
from icl.checks.looped.support.settings import LoopedSettings
from icl.checks.numbers import exact, finding, second
from icl.checks.settings import integer
from icl.checks.verdict import Control, Finding, Route
from icl.progress import track
from icl.theory.looped.equal_steps import EqualSteps
from icl.theory.looped.polynomials import value

VERDICTS = {-1: "holds", 1: "fails", 0: "undecided"}
SOURCE = "the sign of a polynomial on a rational interval that has the best a"


@dataclass(eq=False)
class ScalarIsSaddle(LoopedSettings):
    """Settings: of LoopedSettings; `most`, the longest context at which the sign is looked for."""

    dim: int = integer(2, 2, 20, "a search on draws takes minutes")
    context: int = integer(20, 1)
    layers: int = integer(2, 1, 8)
    most: int = integer(60, 1, 1000)

    reference = "statement 2"
    claim = (
        "The best multiple of Sigma^-1 is a saddle: an antisymmetric part lowers the risk to second order."
    )

    def measure(self) -> Finding:
        steps = self.steps
        a, least = Fraction(steps.best), Fraction(steps.least_risk)
        downward = float(value(steps.antisymmetric_curvature, a) / least)
        upward = float(value(steps.symmetric_curvature, a) / least)
        signs = {
            n: EqualSteps(self.dim, n, self.layers).curvature_sign()
            for n in track(range(1, self.most + 1), "context lengths", self.most)
        }
        saddles = [n for n, sign in signs.items() if sign < 0]
        first = saddles[0] if saddles else None
        return finding(
            [
                exact(curvature=downward)
                .means("coefficient of b^2 along an antisymmetric matrix of norm 1, over the risk")
                .confirmed(curvature=self._route(downward, (1, 0)))
                .judged(VERDICTS[steps.curvature_sign()], "<", 0.0, SOURCE),
                exact(symmetric_curvature=upward)
                .means("coefficient of h^2 along a symmetric matrix of trace 0, over the risk")
                .confirmed(symmetric_curvature=self._route(upward, (0, 1))),
                exact(scalar_step=steps.best, scalar_risk=steps.least_risk)
                .means(
                    scalar_step="best multiple, in whitened coordinates",
                    scalar_risk="risk of the best multiple",
                )
                .confirmed(
                    scalar_step=second_route.scalar_step(self), scalar_risk=second_route.scalar_risk(self)
                ),
                exact(first_context=first).means(f"least context length up to {self.most} with a saddle"),
                exact(saddle_from_there_on=first is not None and len(saddles) == self.most + 1 - first).means(
                    "truth value of: every longer context up to there has a saddle, too"
                ),
            ],
            Control(
                "the coefficient along a symmetric matrix of trace 0, over the risk: it must be positive",
                upward,
                upward > 0,
            ),
            notes=[
                "The coefficient is the same for every antisymmetric matrix: the eigenvectors of G are Haar."
            ],
        )

    def _route(self, curvature: float, powers: tuple[int, int]) -> Route:
        """Return the second route of a curvature: at d = 2 the polynomial in b and h, whose J and H have
        norm sqrt 2."""
        if self.dim != 2:
            return Route("tests", "second differences on drawn contexts")
        coefficient = float(value(self.plane.coefficient(*powers), Fraction(self.steps.best)))
        again = coefficient / 2 / self.plane.rule.value(self.steps.best * np.eye(2))
        return second("the polynomial in b and h, in rational numbers", curvature, again, size=1.0)
