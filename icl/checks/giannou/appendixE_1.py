"""giannou, appendix E.1: the two plotted claims about h, behind the constant decrease of Theorem 5.4.

h(x) = -x^2/(1+x) + c + w*(delta), w*(t) = -t - log(1 - t), delta^2 = x^2/(1+x)^2 - 2c/(1+x) + c', with x the
Newton decrement, c = eps^T grad g and c' = eps^T Hess g eps; see icl.checks.giannou.support.newton_decrease.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from icl.checks.giannou.support import newton_decrease
from icl.checks.numbers import Numbers, exact, finding, searched, tried
from icl.checks.rounding import ROUNDING
from icl.checks.settings import integer, validate
from icl.checks.verdict import Control, Finding

REMARKS = [
    "h is decreasing for x >= 1/6 and |c| <= .06 if c' = 0, as in the left plot. With c' = .012 it is not "
    "decreasing for all x, because delta exceeds 1 and h has a pole (decreasing_up_to_x).",
    "h(1/6) <= -.01 is false for |y| <= .01, |z| <= .012: at y = -.01, z = .012 h is about -.0046. The "
    "inequality is true, with about -.012, for the z of the paper's own eps <= min(.01, .04 mu/(1+mu)): z "
    "<= eps^2 (1+mu)/(4 mu) < .000126. The bound .012 on z is a hundred times too large, and the "
    "conclusion does not follow from it.",
    "The maximum of h' over x in [1/6, 1], |c| <= .06, c' = 0 is about -.14, not -.02.",
    "Misprints: the function printed for h(1/6) must read -1/42 + y - log(1 - r) - r with r the root, as "
    "in the definition of h. The proof of Theorem 5.4 omits the root in the argument of w*, has +.01 for "
    "-.01, and writes the inverse of the Hessian in c' = eps^T Hess g eps, where |c'| <= eps^2 (1 + "
    "mu)/(4 mu).",
]


@dataclass(eq=False)
class AppendixE1:
    """Settings: `cells` of the grid along each axis."""

    reference = "Appendix E.1, Figure 10"
    claim = (
        "The function h is decreasing in x >= 1/6 for |c| <= .06, and h(1/6) <= -.01 for all |y| <= .01 "
        "and |z| <= .012."
    )

    cells: int = integer(1000, 50, 5000)

    def __post_init__(self) -> None:
        validate(self)

    def measure(self) -> Finding:
        least_G = newton_decrease.least_of_G(self.cells)
        printed, error = newton_decrease.largest_at_sixth(0.01, 0.012, self.cells)
        own_z = newton_decrease.own_bound_on_z()
        own, own_error = newton_decrease.largest_at_sixth(0.01, own_z, self.cells)
        turn = newton_decrease.decreasing_up_to(0.012)
        # One point where h exceeds -.01 refutes; that none does on the grid needs the grid's error.
        claim = (
            searched(h_at_sixth=printed)
            .means("largest h(1/6) over |y| <= .01 and |z| <= .012")
            .at_most(-0.01, "the claim; h on a grid, whose values are attained", half_width=error)
        )
        return finding(
            [
                claim.holds_only_if(least_G > 0).provided(*self._sound(least_G, turn)),
                searched(h_at_sixth_own_eps=own).means("largest h(1/6) for the z of the paper's own eps"),
                exact(
                    h_at_sixth_own_eps_upper=own + own_error,
                    h_at_sixth_without_error=float(
                        newton_decrease.h(np.array(1 / 6), np.array(0.0), np.array(0.0))
                    ),
                )
                .means(
                    h_at_sixth_own_eps_upper="upper bound of that value",
                    h_at_sixth_without_error="h(1/6) without errors",
                )
                .compared_by("h_off_printed", "the printed formula with w*"),
                exact(z_of_own_eps=own_z)
                .means("largest z for the paper's own eps")
                .compared_by("own_z_off", "a grid of mu"),
                exact(decreasing_certificate=least_G)
                .means("lower bound of G over x >= 1/6 and |c| <= .06")
                .compared_by("certificate_excess", "the least G on a grid"),
                exact(decreasing_up_to_x=turn)
                .means("largest x up to which h decreases for c' = .012")
                .compared_by("turn_off", "the signs of h' on both sides"),
                exact(printed_largest_derivative=-0.02).means("largest h' as printed").by_definition(),
                searched(largest_derivative=newton_decrease.largest_derivative(self.cells)).means(
                    "largest h' over x in [1/6, 1] and |c| <= .06, for c' = 0"
                ),
            ],
            Control(
                "the bound -.0125 of h(1/6) for the paper's own eps, which is below h without any error",
                own,
                own - own_error > -0.0125,
            ),
            notes=[
                "h decreases for x >= 1/6 and |c| <= .06 because a lower bound of G there, by interval "
                "arithmetic, is positive (decreasing_certificate)."
            ],
            remarks=REMARKS,
        )

    def _sound(self, least_G: float, turn: float) -> list[Numbers]:
        """Compare h, its slope, the certificate and the turn with other ways to them."""
        unsound = "undecided"
        excess = max(least_G - newton_decrease.least_on_grid(), 0.0)
        return [
            tried(
                h_off_printed=newton_decrease.off_printed(0.01, 0.012, self.cells),
                slope_off=newton_decrease.slope_off(),
            )
            .means(
                h_off_printed="largest difference of h(1/6) from the printed formula with w*",
                slope_off="largest difference of h' from finite differences",
            )
            .at_most(ROUNDING, "rounding", otherwise=unsound),
            tried(turn_off=newton_decrease.turn_off(turn, 0.012))
            .means("number of wrong signs of h' on either side of the turn")
            .at_most(0.5, "the signs of h' on both sides", otherwise=unsound),
            tried(certificate_excess=excess)
            .means("amount by which the certificate exceeds the least G on a grid")
            .at_most(ROUNDING, "a lower bound may not exceed it", otherwise=unsound),
            tried(own_z_off=newton_decrease.own_z_off())
            .means("relative difference of the largest z from its value on a grid of mu")
            .at_most(1e-4, "the grid of mu, spaced by 1e-4 in log mu", otherwise=unsound),
        ]
