"""looped: prompts of another Sigma than in training, w ~ N(0, Sigma^-1) of theirs; exact at d = 2.

In coordinates in which the test's Sigma is the identity A becomes F^T A F: c A for c Sigma, and for one
direction stretched a matrix whose symmetric part is no multiple of I.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from icl.checks.looped.support.rotations import best_rotation
from icl.checks.looped.support.second_route import RATIONALS, rational_risk
from icl.checks.looped.support.settings import LoopedSettings
from icl.checks.numbers import exact, finding
from icl.checks.settings import integer
from icl.checks.verdict import Control, Finding
from icl.errors import reals

FAR = 2.5  # a scale at which the advantage is gone
SOURCE = "no gain; the least over all scales and stretches"


@dataclass(eq=False)
class Shift(LoopedSettings):
    """Settings: of LoopedSettings at d = 2; `scales` c of the test's Sigma, `stretches` of one direction
    against the other at one determinant."""

    dim: int = integer(2, 2, 2, "the risk is sampled")
    layers: int = integer(4, 2, 8)
    scales: Sequence[float] = (0.8, 0.9, 1.0, 1.1, 1.25)
    stretches: Sequence[float] = (1.25, 1.5)

    reference = "statement 8"
    claim = (
        "On prompts of these other Sigma the rotation keeps a lower risk than the best scalar of training."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.scales = reals("check.scales", self.scales, None, 0, open_low=True)
        self.stretches = reals("check.stretches", self.stretches, None, 0, open_low=True)

    def measure(self) -> Finding:
        found, scalar_DD = best_rotation(self.steps, self.seed), self.steps.best * np.eye(2)
        turned_DD = found.A_DD

        def gain(root_D: Sequence[float]) -> float:
            F_DD = np.diag(root_D)
            rotation, scalar = (self.plane.rule.value(F_DD @ A_DD @ F_DD) for A_DD in (turned_DD, scalar_DD))
            return 1 - rotation / scalar

        def again(size: float, stretch: float = 1.0) -> float:
            """F (a I + b J) F is a multiple of b J plus a diagonal matrix."""
            mean, apart = (stretch**0.5 + stretch**-0.5) / 2, (stretch**0.5 - stretch**-0.5) / 2
            rotation, scalar = (
                rational_risk(self.plane, size * a * mean, size * turn, size * a * apart)
                for a, turn in ((found.a, float(found.b[0])), (self.steps.best, 0.0))
            )
            return 1 - rotation / scalar

        scaled = [gain([c**0.5, c**0.5]) for c in self.scales]
        stretched = [gain([k**0.25, k**-0.25]) for k in self.stretches]
        by_scale = [again(c) for c in self.scales]
        by_stretch = [again(1.0, k) for k in self.stretches]
        least, far = min([*scaled, *stretched]), gain([FAR**0.5, FAR**0.5])
        return finding(
            [
                exact(least_gain=least)
                .means("least gain of all test laws")
                .also_by(RATIONALS, least_gain=min([*by_scale, *by_stretch]), size=1.0)
                .above(0.0, SOURCE),
                exact(gain_by_scale=scaled, gain_by_stretch=stretched)
                .means(
                    gain_by_scale="gain at c Sigma, in the order of the scales",
                    gain_by_stretch="gain where one direction is stretched",
                )
                .also_by(RATIONALS, gain_by_scale=by_scale, gain_by_stretch=by_stretch, size=1.0),
            ],
            Control(f"gain at {FAR:g} Sigma: too far from training for any", far, far < 0),
        )
