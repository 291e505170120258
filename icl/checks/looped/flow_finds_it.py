"""looped: does training find the rotation? Gradient descent on the exact risk at d = 2, from small random A.

From a multiple of I exact descent never leaves the multiples: the risk is invariant under rotations and
reflections, so its gradient at a I is a multiple of I. Sampled batches are not: their noise leaves a saddle.

T steps, D = 2 covariates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from icl.checks.looped.support import second_route
from icl.checks.looped.support.descent import descend, descend_on_batches, rotation_of
from icl.checks.looped.support.rotations import best_rotation
from icl.checks.looped.support.settings import LoopedSettings
from icl.checks.numbers import exact, finding, sampled, tried
from icl.checks.settings import integer, search_starts
from icl.checks.verdict import Control, Finding
from icl.errors import real
from icl.progress import track
from icl.random import generator
from icl.tasks.wishart import draw_wishart
from icl.theory.looped.weighted import WeightedRisk

NEAR = 0.01
ON_SCALARS = 1e-9  # of |b|: rounding may grow at a saddle
BATCH, RATE = 500, 0.002
SOURCE = "1 % of the best risk found; a start that ends so near has found it, and at least half must"


@dataclass(eq=False)
class FlowFindsIt(LoopedSettings):
    """Settings: of LoopedSettings at d = 2; random `starts` of standard deviation `init_std`, their steps."""

    dim: int = integer(2, 2, 2, "there is no exact gradient at any depth")
    starts: int = search_starts(4)
    steps_taken: int = integer(1000, 1, 100_000, "training takes hours")
    init_std: float = 0.01

    reference = "statement 5"
    claim = (
        "Gradient descent from small random weights ends at a matrix that is better than every scalar one."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.init_std = real("check.init_std", self.init_std, 0, open_low=True)

    def measure(self) -> Finding:
        rule, scalar, best = self.plane.rule, self.steps.least_risk, best_rotation(self.steps, self.seed)
        ends, turns = [], []
        for k in track(range(self.starts), "starts", self.starts):
            start_DD = self.init_std * generator(self.seed, "init", k).standard_normal((2, 2))
            path_TDD, risk_T = descend(rule, start_DD, self.steps_taken)
            ends.append(float(risk_T[-1] / best.risk - 1))
            turns.append(float(rotation_of(path_TDD[-1])))
        _, from_scalar_T = (path := descend(rule, self.init_std * np.eye(2), self.steps_taken))
        left = float(rotation_of(path[0]).max())
        stuck = float(from_scalar_T[-1] / best.risk - 1)
        noisy = rotation_of(self._on_batches())
        gained = best.gain > NEAR
        middle = float(np.median(ends))
        return finding(
            [
                tried(median_excess=middle)
                .means("risk at the end over the least found, less 1, the median over starts")
                .at_most(NEAR, SOURCE, otherwise="undecided")
                .decides_only_if(gained),
                tried(excesses=ends, rotations=turns).means(
                    excesses="risk at the end over the least found, less 1, by start",
                    rotations="|b| at the end, by start",
                ),
                exact(best_risk=best.risk, scalar_risk=scalar)
                .means(best_risk="risk of the best matrix found", scalar_risk="risk of the best scalar")
                .confirmed(
                    best_risk=second_route.rotation_risk(self, best),
                    scalar_risk=second_route.scalar_risk(self),
                ),
                exact(rotation_from_scalar=left)
                .means("largest |b| on the way from a multiple of I, by the exact gradient")
                .at_most(ON_SCALARS, "rounding, which a saddle may let grow"),
                sampled(
                    rotation_on_batches=float(noisy[-1]), rotation_on_batches_at_first=float(noisy[0])
                ).means(
                    rotation_on_batches="|b| after as many steps from the best scalar on batches of "
                    f"{BATCH} contexts",
                    rotation_on_batches_at_first="|b| before these steps",
                ),
            ],
            Control(
                "excess of exact descent from a multiple of I: it must not find the rotation",
                stuck,
                stuck > NEAR,
            ),
            notes=[]
            if gained
            else [f"undecided: here the best matrix gains no more than {NEAR:.0%} on the best scalar"],
        )

    def _on_batches(self) -> np.ndarray:
        rng, n, weight_J = generator(self.seed, "train"), self.context, np.full(BATCH, 1 / BATCH)

        def draw() -> WeightedRisk:
            return WeightedRisk(draw_wishart(rng, n, 2, BATCH) / n, weight_J, self.layers)

        return descend_on_batches(draw, self.steps.best * np.eye(2), self.steps_taken, RATE)
