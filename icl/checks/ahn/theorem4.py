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
    "The proof's dB/dt = -s_i Sigma^-1, R~_i = r_i I and S~_j = s_j Sigma^-1 must read -s_i I, r_i Sigma^-1 "
    "and s_j I, or they leave S.",
]


@dataclass(eq=False)
class Theorem4(CriticalSetSettings):
    """Settings: as of Theorem 3, and the starts of the search for local minima on S."""

    context: int = integer(10, 1)
    layers: int = integer(3, 1, MAX_LAYERS_WITH_B, DEGREES)
    starts: int = search_starts(64)

    reference = "Theorem 4"
    claim = (
        "With x ~ N(0, Sigma) and w ~ N(0, Sigma^-1) the risk of L layers of the form (11) has critical "
        "points with every A_l a multiple of Sigma^-1 and every B_l a multiple of I."
    )

    claim_of_weights = (
        "These weights are at a critical point that Theorem 4 names: every A_l a multiple of Sigma^-1, every "
        "B_l of I, at a local minimum of the risk among those."
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
                relative(exact(value_error=point.value_error(best.risk)), rounding, VALUE),
                *critical_point.sampled_directions(sampled, rounding),
                *token_stacks.numbers_on_tokens(point, rng),
                searched(a=best.a_L.tolist(), b=best.b_L.tolist(), beta=best.beta_L.tolist(), risk=best.risk),
                searched(found=best.found, local_minima=[minimum.risk for minimum in minima]),
                exact(starts=self.starts),
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
        """At random points of S of either sign of b, small enough for no term to dwarf the others."""
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
            f"risk is the best of {self.starts} starts ({minima[0].found} of them ended there), not a "
            f"proven minimum; all {len(minima)} local minima found are listed.",
            "gradient_norm is exact: on S the gradient is a multiple of Sigma (of I), whose size is the "
            "derivative of the exact polynomial. No average over prompts enters it, so it has "
            "no standard error.",
            f"Rare prompts carry the risk: on one batch of {BATCH} the loss is "
            f"{loss['batch_loss_20000']:.3g} where the exact risk is {minima[0].risk:.3g}; a nearby "
            f"point has batch loss {loss['nearby_batch_loss_20000']:.3g} and exact risk "
            f"{loss['nearby_risk']:.3g}.",
            "attention_error and tokens_z are of prompts drawn as tokens from Sigma itself: attention "
            "against the whitened path, context by context, off S; and its mean against the exact risk, on S "
            "with all A divided by 2^L (at the minimum itself no plain sample sees what carries it).",
            "beta_l = a_l b_l; the last B has no effect.",
        ]
