"""ahn, section 6: the loss has several critical points.

Counted on the sets S, where a critical point of the restriction is one of the whole family (Theorems 3 and
4). Eq. (8): the minimum on S has L different scalars, and their L! orders are as many critical points of one
risk (Lemma 4). Eq. (11): local minima of different risks, as many as a search of S finds.

A_l = -a_l Sigma^{-1} in the sign of (11). L layers, P points.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, pairwise, permutations

import numpy as np

from icl.checks.ahn.support.critical_set import (
    Point,
    distance,
    halfway,
    share_by_polynomial,
    share_of_rounding,
    track_starts,
)
from icl.checks.ahn.support.settings import DEGREES, MAX_DIM, MAX_LAYERS_WITH_B, PromptSettings
from icl.checks.numbers import exact, finding, searched
from icl.checks.settings import integer, search_starts
from icl.checks.verdict import Control, Finding
from icl.random import generator
from icl.theory.ahn.invariant_risk import InvariantRisk
from icl.verdicts import ROUTE_ROUNDING

APART = 1e-6  # of two points, relative: the distance at which the search takes them for one
GRADIENT = "rounding: 64 eps times the gradient with all terms made positive"


@dataclass(eq=False)
class CriticalPoints(PromptSettings):
    """Settings: of the prompts, the layers (two at least), and the starts of the search on S of (11)."""

    dim: int = integer(5, 1, MAX_DIM, "the Wishart moments' terms grow with the dimension")
    context: int = integer(10, 1)
    layers: int = integer(3, 2, MAX_LAYERS_WITH_B, DEGREES)
    starts: int = search_starts(64)

    task_covariance = "inverse"

    reference = "Section 6, after Theorem 5; Lemma 4"
    claim = "The population risk of several layers has more than one critical point."

    def measure(self) -> Finding:
        orders, minima = self._orders(), self._minima()
        points = [*orders, *minima]
        shares = [share_of_rounding(point) for point in points]
        risks = [point.value() for point in minima]
        different = sum(abs(one / other - 1) > APART for one, other in pairwise(risks))
        apart = min(distance(*pair) for some in (orders, minima) for pair in combinations(some, 2))
        between = share_of_rounding(halfway(orders[0], orders[1]))
        return finding(
            [
                exact(largest_gradient=max(shares))
                .means("largest gradient over the points, each divided by its rounding error")
                .also_by(
                    "the polynomial's derivative",
                    largest_gradient=max(share_by_polynomial(point) for point in points),
                    size=1 / ROUTE_ROUNDING,  # both are rounding, and at most 1
                )
                .at_most(1.0, GRADIENT),
                searched(least_distance=apart)
                .means("least distance of two of the points, relative")
                .above(APART, "the distance at which the search takes two points for one"),
                exact(of_eq_8=len(orders), risk_of_eq_8=orders[0].value(), starts=self.starts)
                .means(
                    of_eq_8="number of critical points found for eq. (8)",
                    risk_of_eq_8="risk of the critical points of eq. (8)",
                    starts="number of starts of the search on S",
                )
                .by_definition()
                .also_by("quadrature", risk_of_eq_8=orders[0].on_the_rule()[0]),
                searched(
                    critical_points=len(points),
                    of_eq_11=len(minima),
                    risks_of_eq_11=risks,
                    different_risks_of_eq_11=different + 1,
                ).means(
                    critical_points="number of critical points found for eqs. (8) and (11)",
                    of_eq_11="number of local minima found on S for eq. (11)",
                    risks_of_eq_11="risks of the local minima found for eq. (11)",
                    different_risks_of_eq_11="number of different risks among the local minima of eq. (11)",
                ),
            ],
            Control("the same ratio halfway between two of the points of eq. (8)", between, between > 1),
            notes=[
                "The number is a count of the points found on S; saddle points and points off S are not "
                "searched for."
            ],
            remarks=[
                f"By Lemma 4 the {len(orders)} orders of the layers of one minimum are critical points of "
                f"the same risk. With B there are also local minima of different risks ({different + 1} "
                "found), so it matters which of them training reaches.",
            ],
        )

    def _orders(self) -> list[Point]:
        """Return the orders of the minimum on S of (8)."""
        risk = InvariantRisk(self.dim, self.context, self.layers)
        best = risk.optimum()
        return [
            Point(risk, self.law, best.a_L[list(order)], np.zeros(0))
            for order in permutations(range(self.layers))
        ]

    def _minima(self) -> list[Point]:
        """Local minima on S of (11), best first."""
        risk = InvariantRisk(self.dim, self.context, self.layers, with_b=True)
        found = risk.minimise(generator(self.seed, "search"), self.starts, track_starts)
        return [Point(risk, self.law, minimum.a_L, minimum.b_L) for minimum in found]
