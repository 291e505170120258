"""looped: how much the best matrix that a search finds gains on the best multiple of Sigma^-1."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from icl.checks.looped.support import second_route
from icl.checks.looped.support.rotations import DRAWS, Rotation, best_rotation
from icl.checks.looped.support.settings import LoopedSettings
from icl.checks.looped.support.tokens import paths_error
from icl.checks.looped.support.witness import scalar_is_best, witness_near
from icl.checks.numbers import exact, finding, of_kind, searched
from icl.checks.settings import integer
from icl.checks.verdict import Control, Finding
from icl.theory.looped.polynomials import value

SOURCE = "no gain; by certificate at d = 2, by a 99.9 % interval on prompts held out beyond"


@dataclass(eq=False)
class Gain(LoopedSettings):
    """Settings: of LoopedSettings; `draws` of the comparison beyond d = 2, times d^2."""

    draws: int = integer(DRAWS, 10_000, 10**7, "they do not fit in memory")

    reference = "statement 3"
    claim = "Some matrix, applied L times, has a lower risk than every multiple of Sigma^-1."

    def measure(self) -> Finding:
        steps, found = self.steps, best_rotation(self.steps, self.seed, self.draws)
        kind = "exact" if found.half_width == 0 else "sampled"
        separate = float(steps.separate_risk)
        return finding(
            [
                of_kind(kind, gain=found.gain)
                .means("share of the best scalar's risk that the best matrix found saves")
                .confirmed(gain=second_route.gain(self, found))
                .judged(self._verdict(found), ">", 0.0, SOURCE)
                .provided(paths_error(found.A_DD, self.law, self.layers, self.seed)),
                of_kind(kind, gain_stderr=found.stderr).means("standard error of the gain, 0 if exact"),
                exact(scalar_risk=steps.least_risk)
                .means("least risk of a multiple of Sigma^-1, L times")
                .confirmed(scalar_risk=second_route.scalar_risk(self)),
                of_kind(kind, best_risk=found.risk)
                .means("risk of the best matrix found, L times")
                .confirmed(best_risk=second_route.rotation_risk(self, found)),
                exact(separate_risk=separate)
                .means("least risk of L multiples that may differ")
                .confirmed(separate_risk=second_route.separate_risk(steps)),
                exact(scalar_step=steps.best)
                .means("a of the best multiple, in whitened coordinates")
                .confirmed(scalar_step=second_route.scalar_step(self)),
                searched(symmetric_part=found.a, rotations=found.b.tolist()).means(
                    "a and the b_j of the best matrix found, a I + sum of b_j J"
                ),
            ],
            self._control(found),
            notes=[
                "Of the best matrix found: another search may find a better one. In whitened coordinates the "
                "risk does not depend on Sigma; paths_error is of prompts of the Sigma that was asked."
            ],
        )

    def _verdict(self, found: Rotation) -> str:
        if self.dim == 1 or self.layers == 1:
            return "fails"  # the risk is convex in a, and in A
        if self.dim > 2:
            return "holds" if found.gain > found.half_width > 0 else "undecided"
        if witness_near(self.plane, found.a, float(found.b[0])).below_symmetric:
            return "holds"
        return "fails" if scalar_is_best(self.plane, self.steps.best) else "undecided"

    def _control(self, found: Rotation) -> Control:
        """Take the same symmetric part without its rotation, or a step that is wrong where there is none."""
        a = found.a if found.b.any() else 1.1 * self.steps.best
        least = Fraction(self.steps.least_risk)
        gain = float(1 - value(self.steps.polynomial, Fraction(a)) / least)
        return Control("gain of the same matrix without its antisymmetric part", gain, gain < 0)
