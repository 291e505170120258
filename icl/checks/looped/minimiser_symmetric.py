"""looped: is the best single matrix, applied L times, symmetric, as a preconditioner is?

At d = 2 weights with rational entries are compared with all symmetric ones in rational numbers; beyond, with
the best multiple of Sigma^-1 on prompts that no search has seen. "holds" takes a certificate: one dimension,
one layer, or two layers at d = 2.

D covariates.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from icl.checks.looped.support import second_route
from icl.checks.looped.support.rotations import DRAWS, Rotation, best_rotation
from icl.checks.looped.support.settings import LoopedSettings
from icl.checks.looped.support.tokens import paths_error
from icl.checks.looped.support.witness import scalar_is_best, witness_near
from icl.checks.numbers import Numbers, exact, finding, of_kind
from icl.checks.settings import integer
from icl.checks.verdict import Control, Finding
from icl.theory.looped.equal_steps import antisymmetric
from icl.theory.looped.polynomials import value

SOURCE = "the least risk of a symmetric matrix"
WRONG_STEP = 1.1  # of the best a


@dataclass(eq=False)
class MinimiserSymmetric(LoopedSettings):
    """Settings: of LoopedSettings; `draws` of the comparison beyond d = 2, times d^2."""

    layers: int = integer(2, 1, 8)
    draws: int = integer(DRAWS, 10_000, 10**7, "they do not fit in memory")

    reference = "statement 1"
    claim = "The matrix with the least risk, applied L times, is symmetric."

    def measure(self) -> Finding:
        steps = self.steps
        found = best_rotation(steps, self.seed, self.draws)
        decided = self._in_the_plane(found) if self.dim == 2 else self._elsewhere(found)
        return finding(
            [
                decided[0].provided(paths_error(found.A_DD, self.law, self.layers, self.seed)),
                *decided[1:],
                exact(scalar_risk=steps.least_risk)
                .means("least risk of a multiple of Sigma^-1")
                .confirmed(scalar_risk=second_route.scalar_risk(self)),
                exact(best_step=steps.best)
                .means("best multiple, in whitened coordinates")
                .confirmed(best_step=second_route.scalar_step(self)),
                of_kind("exact" if found.half_width == 0 else "sampled", best_risk=found.risk)
                .means("risk of the best matrix found")
                .confirmed(best_risk=second_route.rotation_risk(self, found)),
                exact(whitened=found.A_DD.tolist())
                .means("best matrix found, in whitened coordinates")
                .by_definition(),
            ],
            self._control(found),
            notes=self._notes(found),
        )

    def _in_the_plane(self, found: Rotation) -> list[Numbers]:
        near = witness_near(self.plane, found.a, float(found.b[0]))
        excess = float(near.risk / Fraction(self.steps.least_risk) - 1)
        witness_DD = float(near.a) * np.eye(2) + antisymmetric(2, float(near.b))
        rule, best_DD = self.plane.rule, self.steps.best * np.eye(2)
        by_rule = rule.value(witness_DD) / rule.value(best_DD) - 1
        holds = self.layers == 1 or scalar_is_best(self.plane, self.steps.best)
        verdict = "holds" if holds else "fails" if near.below_symmetric else "undecided"
        return [
            exact(witness_excess=excess)
            .means("risk of the rational witness over the least symmetric risk, less 1")
            .also_by("a Gauss rule for 2 x 2 Wishart matrices", witness_excess=by_rule, size=1.0)
            .judged(verdict, ">", 0.0 if verdict == "fails" else -1e-12, SOURCE),
            exact(witness=near.entries)
            .means("rational entries of the witness, in whitened coordinates")
            .by_definition(),
            exact(
                witness_numerator=str(near.risk.numerator), witness_denominator=str(near.risk.denominator)
            ).means(
                witness_numerator="numerator of the exact risk of the witness",
                witness_denominator="denominator of the exact risk of the witness",
            ),
            exact(real_roots=near.roots).means(
                "number of real roots of f(a I) minus the risk of the witness, by Sturm's theorem"
            ),
        ]

    def _elsewhere(self, found: Rotation) -> list[Numbers]:
        """d = 1 has no antisymmetric matrix, and one layer is convex; else only a lower risk decides."""
        if self.dim == 1 or self.layers == 1:
            return [
                exact(witness_excess=0.0)
                .means("possible decrease of the risk by an antisymmetric part, which is 0 here")
                .by_definition()
                .judged("holds", ">", -1e-12, SOURCE)
            ]
        low, high = -found.gain - found.half_width, -found.gain + found.half_width
        verdict = "fails" if high < 0 and found.half_width > 0 else "undecided"
        return [
            of_kind("sampled", witness_excess=-found.gain, witness_excess_stderr=found.stderr)
            .means("risk of the matrix found over the least scalar risk, less 1, on prompts held out")
            .judged(verdict, ">", 0.0, SOURCE + "; 99.9 % interval"),
            of_kind("sampled", witness_excess_low=low, witness_excess_high=high).means(
                witness_excess_low="lower end of the interval",
                witness_excess_high="upper end of the interval",
            ),
        ]

    def _control(self, found: Rotation) -> Control:
        """Take the symmetric part of the witness, or a wrong step without one: neither beats the best."""
        symmetric_DD = (found.A_DD + found.A_DD.T) / 2
        a = float(np.trace(symmetric_DD)) / self.dim
        a = a if np.abs(found.b).max(initial=0) > 0 else WRONG_STEP * self.steps.best
        excess = float(value(self.steps.polynomial, Fraction(a)) / Fraction(self.steps.least_risk)) - 1
        return Control(
            "risk of the witness's symmetric part over the least scalar risk, less 1", excess, excess > 0
        )

    def _notes(self, found: Rotation) -> list[str]:
        if self.dim == 1:
            return ["In one dimension every matrix is symmetric: the statement holds trivially."]
        if self.layers == 1:
            return ["One layer: the risk is a convex quadratic form in A, invariant under rotations."]
        if self.dim == 2 and found.b.any():
            return [
                "By certificate: f(a I + h H) >= f(a I) since the coefficient of every power of h^2 is "
                "positive for every a, and f(a I) less the witness's risk is positive without a real root."
            ]
        if self.dim == 2:
            return ["No search found an antisymmetric part that lowers the risk; that is no proof."]
        return [
            "Symmetric matrices that are no multiple of Sigma^-1 are not excluded at d > 2: a search "
            "for them is looped/symmetric_optimum_is_scalar. Their curvature at the best multiple is "
            "positive."
        ]
