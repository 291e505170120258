"""ahn, Theorem 3: with w ~ N(0, Sigma^{-1}) the set S = {A_l = a_l Sigma^{-1}} of (8) has critical points.

The proof's content: at *every* point of S the gradient with respect to A_l is a multiple of Sigma, so a
minimum on S is a critical point of the whole family. Directions are measured on two laws of whitened S: the
orbit of one drawn prompt under rotations, for any L; and Wishart, exactly, by words (L <= 3). The size is
that of the exact polynomial's derivative, at the minimum on S, which is known in closed form.

P points, L layers, D covariates. A has the sign of (8) in results and of (11) in
icl.checks.ahn.support.critical_set.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from icl.checks.ahn.support import critical_point, orbits, token_stacks
from icl.checks.ahn.support.critical_point import VALUE, relative
from icl.checks.ahn.support.critical_set import Point, directions, off_direction, track_starts
from icl.checks.ahn.support.judge_critical_set import judge_against_optimum
from icl.checks.ahn.support.settings import CriticalSetSettings
from icl.checks.ahn.support.trace_words import directions_by_words, gradient_norm_by_words, has_words
from icl.checks.numbers import exact, finding, searched
from icl.checks.settings import integer
from icl.checks.verdict import Control, Finding, Weights
from icl.random import generator
from icl.theory.ahn.invariant_risk import InvariantRisk

POINTS, STARTS = 3, 8  # random points of S; starts of the search that must find the closed-form optimum again
NOTES = [
    "The risk at the optimum equals a lower bound that is computed in rational numbers.",
    "Prompts drawn as tokens from Sigma tie the whitened formulas to attention: on each context, off S, "
    "and in the mean over contexts, on S with the optimal A divided by L (at the optimum the risk has too "
    "heavy a tail) and, for L <= 3, off S.",
    "The gradient norm is exact: by words in S for L <= 3, otherwise by the derivative of the exact "
    "polynomial, because the gradient on S is that multiple of Sigma.",
]


@dataclass(eq=False)
class Theorem3(CriticalSetSettings):
    """Settings: sizes, covariance of x in one of three ways, prompts of the sampled test, seed."""

    layers: int = integer(3, 1, 12, "the alternating product of the layers loses its digits")

    reference = "Theorem 3"
    claim = (
        "Let x ~ N(0, Sigma) and w ~ N(0, Sigma^-1). The population risk of L layers of eq. (8) has a "
        "critical point at which every A_l is a multiple of Sigma^-1."
    )
    claim_of_weights = (
        "These weights are at the best critical point of Theorem 3: every A_l is a multiple of Sigma^-1, and "
        "the risk is the least of all such weights."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.risk = InvariantRisk(self.dim, self.context, self.layers)

    def measure(self) -> Finding:
        rng, best = generator(self.seed, "check"), self.risk.optimum()
        optimum, a_PL = self._point(best.a_L), rng.uniform(0.1, 0.6, (POINTS, self.layers)) * best.a_L
        points = [self._point(a_L) for a_L in a_PL]
        off = directions(points, self._orbits(rng))
        if has_words(self.layers, self.law):
            off = orbits.worst_of(off, directions_by_words(points))
        lower, rounding = float(self.risk.lower_bound()), optimum.value_bound()
        minima = self.risk.minimise(rng, STARTS, track_starts)
        below = max(0.0, best.risk / minima[0].risk - 1) if minima else 0.0
        sampled = orbits.rotation_test(optimum.stack, self.law, rng, self.samples)
        return finding(
            [
                *critical_point.directions(off),
                critical_point.gradient_norm(*self._gradient_norm(optimum)),
                critical_point.task_covariance(self.law),
                relative(
                    exact(value_error=optimum.value_error(best.risk))
                    .means("relative difference of the exact risk by quadrature and by the polynomial")
                    .compared_by("value_error", "quadrature, and polynomial"),
                    rounding,
                    VALUE,
                ),
                relative(
                    exact(lower_bound_error=abs(best.risk / lower - 1))
                    .means("relative difference of the least risk on S and its rational lower bound")
                    .compared_by("lower_bound_error", "polynomial at the optimum, and rational bound"),
                    rounding,
                    VALUE,
                ),
                relative(
                    searched(search_below_optimum=below).means(
                        "amount by which a search ends below the closed form of the optimum on S, relative"
                    ),
                    rounding,
                    VALUE,
                ),
                *critical_point.sampled_directions(sampled, rounding),
                *token_stacks.numbers_on_tokens(optimum, rng),
                exact(scalars=best.a_L.tolist(), lower_bound=lower)
                .means(
                    scalars="scalars a_l of the optimum on S",
                    lower_bound="rational lower bound of the risk on S",
                )
                .compared_by("lower_bound_error", "the risk there, which is the rational lower bound"),
                exact(risk=best.risk)
                .means("exact risk at the optimum on S")
                .compared_by("value_error", "quadrature"),
                exact(risk_by_layers=[self._least_risk(L) for L in range(1, max(self.layers, 4) + 1)])
                .means("least risk on S for 1, 2, ... layers")
                .in_tests(critical_point.RATIONAL_BOUND),
            ],
            self._control(best.a_L, rng),
            notes=NOTES,
            remarks=self._remarks(best.risk),
        )

    def judge(self, weights: Weights) -> Finding:
        """Compare weights of (8) with the optimum on S, up to the order of the layers."""
        return judge_against_optimum(weights, self.seed, self.samples)

    def _control(self, a_L: np.ndarray, rng: np.random.Generator) -> Control:
        off = off_direction(self._point(0.5 * a_L), self._orbits(rng)) if self.dim > 1 else None
        return critical_point.control(off, "half of the optimum", self._gradient_norm(self._point(1.1 * a_L)))

    def _orbits(self, rng: np.random.Generator) -> torch.Tensor:
        return orbits.whitened_prompts(self.law, rng, orbits.count(self.dim))

    def _gradient_norm(self, point: Point) -> tuple[float, float]:
        return gradient_norm_by_words(point) if has_words(self.layers, self.law) else point.gradient_norm()

    def _point(self, a_L: np.ndarray) -> Point:
        return Point(self.risk, self.law, a_L, np.zeros(0))

    def _least_risk(self, layers: int) -> float:
        return InvariantRisk(self.law.dim, self.law.context_R[0], layers).optimum().risk

    def _remarks(self, risk: float) -> list[str]:
        remarks = [
            "Footnote 2 is settled for eq. (8): the risk on S is the integral of q^2 with q(0) = 1. It is "
            "coercive in a, so the infimum is attained, with 1 / a_l the roots of the best q.",
            "Misprints in the proof: R~_i = r_i I must read r_i Sigma^-1, and w^T w must read w w^T; "
            "statement and proof keep B_i, which eq. (8) does not have.",
            "Section 4.2: the Hessian of R(w) = (w - w_*)^T X X^T (w - w_*) / 2n is X X^T / n, "
            "not X X^T / 2n.",
            f"The least risk on S is {risk:.4g}, so the loss is not 'almost 0', as section 4.3 says.",
        ]
        return remarks if self.distortion is None else [*remarks, self._of_section_4_2()]

    def _of_section_4_2(self) -> str:
        root_DD = self.law.root_RDD[0]
        U_DD = torch.linalg.svd(root_DD)[0]  # Sigma^{-1/2} = U diag U^T
        printed_DD = (U_DD / torch.linalg.svdvals(root_DD)) @ U_DD.mT
        wrong = float((root_DD.mT @ printed_DD - torch.eye(self.dim).double()).abs().max())
        return (
            "Section 4.2: y = <x, w> takes w = W^-T w_bar; the printed Sigma^-1/2 w_bar misses W^T w "
            f"= w_bar by up to {wrong:.2g} per entry here (0 for symmetric positive W)."
        )
