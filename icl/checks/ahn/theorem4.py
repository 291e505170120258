"""ahn, Theorem 4: with w ~ N(0, Sigma^{-1}) the set S = {A_l = a_l Sigma^{-1}, B_l = b_l I} of (11) holds
critical points.

At every point of S the gradient with respect to A_l is a multiple of Sigma and with respect to B_l a multiple
of I, so a minimum on S is a critical point of the whole family. Prompts are heavy-tailed here (the risk is a
moment of degree 3^L - 1), so no verdict rests on a plain average over prompts: directions are measured on
orbits of single prompts, sizes by the exact polynomial, and the sampled test weighs prompts.

A_l = -a_l Sigma^{-1} in the sign of (11), beta_l = a_l b_l. The last B has no effect and is left out.
R seeds, L layers, D covariates, V variables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from icl.checks.ahn.support import critical_point, orbits, token_stacks
from icl.checks.ahn.support.batch_loss import BATCH, against_the_risk
from icl.checks.ahn.support.critical_point import VALUE, relative
from icl.checks.ahn.support.critical_set import (
    Point,
    directions,
    no_minimum,
    off_direction,
    track_starts,
)
from icl.checks.ahn.support.judge_critical_set import judge_against_minima
from icl.checks.ahn.support.settings import DEGREES, MAX_LAYERS_WITH_B, CriticalSetSettings
from icl.checks.numbers import exact, finding, searched
from icl.checks.settings import integer, search_starts
from icl.checks.verdict import Control, Finding, Weights
from icl.random import generator
from icl.theory.ahn.invariant_risk import InvariantRisk, PolynomialMinimum

POINTS = 3  # random points of S
REMARKS = [
    "A strict minimum on S is a critical point, so the infimum in (12) is attained here (footnote 3).",
    "Misprints in the proof: dB/dt = -s_i Sigma^-1, R~_i = r_i I and S~_j = s_j Sigma^-1 must read -s_i I, "
    "r_i Sigma^-1 and s_j I; as printed they leave S.",
]


@dataclass(eq=False)
class Theorem4(CriticalSetSettings):
    """Settings: as of Theorem 3, and the starts of the search for local minima on S."""

    context: int = integer(10, 1)
    layers: int = integer(3, 1, MAX_LAYERS_WITH_B, DEGREES)
    starts: int = search_starts(64)

    reference = "Theorem 4"
    claim = (
        "Let x ~ N(0, Sigma) and w ~ N(0, Sigma^-1). The population risk of L layers of eq. (11) has a "
        "critical point at which every A_l is a multiple of Sigma^-1 and every B_l a multiple of I."
    )

    claim_of_weights = (
        "These weights are at a critical point of Theorem 4: every A_l is a multiple of Sigma^-1, every "
        "B_l a multiple of I, and the risk has a local minimum among such weights."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.risk = InvariantRisk(self.dim, self.context, self.layers, with_b=True)

    def measure(self) -> Finding:
        rng = generator(self.seed, "check")
        minima = self.risk.minimise(rng, self.starts, track_starts)
        if not minima:
            return no_minimum(starts=self.starts)
        best, point = minima[0], Point(self.risk, self.law, minima[0].a_L, minima[0].b_L)
        off, rounding = self._directions(rng), point.value_bound()
        sampled = orbits.rotation_test(point.stack, self.law, rng, self.samples)
        losses = against_the_risk(point, self.law.gram_prompts([generator(self.seed, "eval")], BATCH))
        return finding(
            [
                *critical_point.directions(off),
                critical_point.gradient_norm(*point.gradient_norm()),
                critical_point.task_covariance(self.law),
                relative(
                    exact(value_error=point.value_error(best.risk))
                    .means("relative difference of the exact risk by quadrature and by the polynomial")
                    .compared_by("value_error", "quadrature, and polynomial"),
                    rounding,
                    VALUE,
                ),
                *critical_point.sampled_directions(sampled, rounding),
                *token_stacks.numbers_on_tokens(point, rng),
                searched(
                    a=best.a_L.tolist(), b=best.b_L.tolist(), beta=best.beta_L.tolist(), risk=best.risk
                ).means(
                    a="scalars a_l of the lowest minimum found on S",
                    b="scalars b_l of that minimum",
                    beta="products a_l b_l of that minimum",
                    risk="exact risk at the lowest minimum found on S",
                ),
                searched(found=best.found, local_minima=[minimum.risk for minimum in minima]).means(
                    found="number of starts that end at that minimum",
                    local_minima="exact risks of all local minima found on S",
                ),
                exact(starts=self.starts).means("number of starts of the search on S"),
                *losses,
            ],
            self._control(point, rng),
            notes=self._notes(minima, {number.name: number.value for part in losses for number in part}),
            remarks=REMARKS,
        )

    def judge(self, weights: Weights) -> Finding:
        """Compare weights of (11) with the critical points in S."""
        return judge_against_minima(weights, self.starts, self.seed, self.samples)

    def _directions(self, rng: np.random.Generator) -> orbits.Deviation:
        """Measure at random points of S of either sign of b, small enough for no term to dwarf the others."""
        W_RDD, points = orbits.whitened_prompts(self.law, rng, orbits.count(self.law.dim)), []
        largest = float(torch.linalg.eigvalsh(W_RDD).max())
        for _ in range(POINTS):
            a_L = rng.uniform(0.1, 0.9, self.layers) / largest
            b_L = rng.uniform(0.2, 1.5, self.layers - 1) * rng.choice([-1, 1], self.layers - 1)
            points.append(Point(self.risk, self.law, a_L, b_L))
        return directions(points, W_RDD)

    def _control(self, point: Point, rng: np.random.Generator) -> Control:
        off = None
        if self.law.dim > 1:
            W_RDD = orbits.whitened_prompts(self.law, rng, orbits.count(self.law.dim))
            small = 0.5 / float(torch.linalg.eigvalsh(W_RDD).max())
            plain = Point(self.risk, self.law, np.full(self.layers, small), np.ones(self.layers - 1))
            off = off_direction(plain, W_RDD)
        return critical_point.control(off, "equal scalars", point.scaled(1.1).gradient_norm())

    def _notes(self, minima: Sequence[PolynomialMinimum], loss: Mapping[str, float]) -> list[str]:
        return [
            f"The risk is the lowest of {self.starts} starts ({minima[0].found} of them end there), "
            f"without a proof that it is the minimum; all {len(minima)} local minima found are listed.",
            "The gradient norm is exact: on S the gradient is a multiple of Sigma (of I), and its size is "
            "the derivative of the exact polynomial.",
            f"The loss has a heavy tail: on a batch of {BATCH} prompts it is {loss['batch_loss_20000']:.3g}, "
            f"where the population risk is {minima[0].risk:.3g}; a nearby point has batch loss "
            f"{loss['nearby_batch_loss_20000']:.3g} and population risk {loss['nearby_risk']:.3g}.",
            "Prompts drawn as tokens from Sigma tie the whitened formulas to attention: on each context, "
            "off S, and in the mean over contexts, on S with all A divided by 2^L (at the minimum the "
            "tail is too heavy for plain samples).",
            "beta_l = a_l b_l; the last B has no effect.",
        ]
