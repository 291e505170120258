"""looped: a matrix trained for L loops, applied L' > L times; exact at d = 2."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from icl.checks.looped.support.rotations import best_rotation
from icl.checks.looped.support.second_route import RATIONALS
from icl.checks.looped.support.settings import LoopedSettings
from icl.checks.numbers import exact, finding
from icl.checks.settings import integer
from icl.checks.verdict import Control, Finding
from icl.theory.looped.equal_steps import EqualSteps
from icl.theory.looped.plane import PlaneRisk

SOURCE = "the risk of the best scalar for L loops, as often applied"


@dataclass(eq=False)
class LoopsBeyondTraining(LoopedSettings):
    """Settings: of LoopedSettings at d = 2; `most` loops at test time."""

    dim: int = integer(2, 2, 2, "the risk of more loops has a heavier tail than draws see")
    layers: int = integer(4, 2, 8)
    most: int = integer(8, 3, 12, "the rule has too many nodes")

    reference = "statement 7"
    claim = (
        "Applied more often than in training, up to `most` times, the rotation keeps a lower risk than the "
        "scalar."
    )

    def measure(self) -> Finding:
        found, scalar_DD = best_rotation(self.steps, self.seed), self.steps.best * np.eye(2)
        loops = range(self.layers, max(self.most, self.layers + 1) + 1)
        rules = {L: PlaneRisk(self.context, L).rule for L in loops}
        scalar = {L: rule.value(scalar_DD) for L, rule in rules.items()}
        turned = {L: rule.value(found.A_DD) for L, rule in rules.items()}
        worst = max(turned[L] / scalar[L] - 1 for L in loops)
        last = loops[-1]
        retrained = best_rotation(EqualSteps(2, self.context, last), self.seed).risk
        least = min(turned, key=lambda L: turned[L])
        return finding(
            [
                exact(worst_excess=worst)
                .means(
                    "risk of the rotation over that of the scalar, less 1, the largest over loops at "
                    "test time"
                )
                .in_tests(RATIONALS)
                .at_most(0.0, SOURCE)
                .holds_only_if(worst < 0),
                exact(scalar_risks=list(scalar.values()))
                .means(f"risks at {loops[0]} to {last} loops of the best scalar for {self.layers}")
                .also_by(
                    "rational moments of traces",
                    scalar_risks=[EqualSteps(2, self.context, L).risk(self.steps.best) for L in loops],
                ),
                exact(rotation_risks=list(turned.values()))
                .means(f"risks at {loops[0]} to {last} loops of the best rotation for {self.layers}")
                .in_tests(RATIONALS),
                exact(best_loops=least).means("number of loops at which the risk of the rotation is least"),
                exact(growth=turned[last] / turned[self.layers])
                .means(
                    f"risk at {last} loops over that at {self.layers}; above 1 the loops diverge on rare "
                    "prompts"
                )
                .in_tests(RATIONALS),
            ],
            Control(
                f"risk of the matrix best for {last} loops over the reused one's, less 1: it must be lower",
                retrained / turned[last] - 1,
                retrained / turned[last] - 1 < 0,
            ),
            notes=[
                "Gaussian prompts have no largest eigenvalue: beyond some number of loops every risk grows."
            ],
        )
