"""looped: among symmetric matrices, applied L times, the best is a multiple of Sigma^-1.

By certificate at d = 2; beyond, a search among symmetric matrices on weighted draws, compared on others.

D covariates.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.optimize import minimize

from icl.checks.looped.support import second_route
from icl.checks.looped.support.rotations import DRAWS, SEARCH_DRAWS, held_out_gain, weighted_draws
from icl.checks.looped.support.settings import LoopedSettings
from icl.checks.looped.support.witness import symmetric_best_is_scalar
from icl.checks.numbers import Numbers, exact, finding, sampled
from icl.checks.settings import integer, search_starts
from icl.checks.verdict import Control, Finding
from icl.random import generator
from icl.theory.looped.polynomials import is_positive, real_roots, value
from icl.theory.looped.weighted import Array

SOURCE = "0 real roots of every coefficient of a power of h^2, and a positive value: Sturm's theorem"
HELD_OUT = "the risk of the best multiple; 99.9 % interval on draws held out"


@dataclass(eq=False)
class SymmetricOptimumIsScalar(LoopedSettings):
    """Settings: of LoopedSettings; beyond d = 2 random `starts` and `draws` of the comparison, times d^2."""

    dim: int = integer(2, 2, 20, "a search on draws takes minutes")
    starts: int = search_starts(4)
    draws: int = integer(DRAWS, 10_000, 10**7, "they do not fit in memory")

    reference = "statement 4"
    claim = "Of all symmetric matrices, applied L times, a multiple of Sigma^-1 has the least risk."

    def measure(self) -> Finding:
        curvature = self.steps.symmetric_curvature
        return finding(
            [
                *(self._certificate() if self.dim == 2 else self._search()),
                exact(local_roots=real_roots(curvature)).means(
                    "number of real roots in a of the coefficient of h^2 at a I, in this dimension"
                ),
                exact(local_is_positive=is_positive(curvature)).means(
                    "truth value of: that coefficient is positive"
                ),
                exact(scalar_risk=self.steps.least_risk)
                .means("least risk of a multiple of Sigma^-1")
                .confirmed(scalar_risk=second_route.scalar_risk(self)),
            ],
            self._control(),
            notes=[]
            if self.dim == 2
            else [
                "A search that finds nothing lower is no proof: what decides it is a lower symmetric matrix."
            ],
        )

    def _certificate(self) -> list[Numbers]:
        plane = self.plane
        roots = [real_roots(plane.coefficient(0, k)) for k in range(1, self.layers + 1)]
        verdict = "holds" if symmetric_best_is_scalar(plane) else "undecided"
        return [
            exact(real_roots=sum(roots))
            .means("number of real roots in a of the coefficients of h^2, h^4, ... of f(a I + h H)")
            .in_tests("Sturm's theorem at polynomials whose roots are known")
            .judged(verdict, "<", 0.0, SOURCE),
        ]

    def _search(self) -> list[Numbers]:
        d, best = self.dim, self.steps.best
        risk = weighted_draws(d, self.context, self.layers, SEARCH_DRAWS, self.seed, 2)
        upper = np.triu_indices(d)
        rng = generator(self.seed, "search", 3)

        def log_risk(theta: Array) -> tuple[float, Array]:
            risk_there, slope_DD = risk.with_gradient(_symmetric(theta, d))
            both_DD = slope_DD + slope_DD.T - np.diag(np.diag(slope_DD))
            return float(np.log(risk_there)), both_DD[upper] / risk_there

        ends = []
        for _ in range(self.starts):
            noise = 0.3 * best * rng.standard_normal(len(upper[0]))
            start = (best * np.eye(d))[upper] + noise / d**0.5
            ends.append(minimize(log_risk, start, jac=True, method="L-BFGS-B", options={"maxiter": 60}))
        A_DD = _symmetric(min(ends, key=lambda end: end.fun).x, d)
        held_out = weighted_draws(d, self.context, self.layers, self.draws // d**2, self.seed, 4)
        gain, half_width = held_out_gain(A_DD, self.steps, held_out)
        spread = np.linalg.eigvalsh(A_DD)
        return [
            sampled(excess=-gain, excess_stderr=half_width / 3.29)
            .means(
                "risk of the best symmetric matrix found over the best multiple's, less 1, on draws held out"
            )
            .judged("fails" if gain > half_width else "undecided", ">", 0.0, HELD_OUT),
            sampled(spread=float(spread[-1] / spread[0] - 1)).means(
                "largest eigenvalue of that matrix over the least, less 1, due to the draws of the search"
            ),
        ]

    def _control(self) -> Control:
        """Take another multiple for the best one."""
        wrong = Fraction(self.steps.best) * Fraction(11, 10)
        excess = float(value(self.steps.polynomial, wrong) / Fraction(self.steps.least_risk)) - 1
        return Control("risk of 1.1 times the best multiple over its own, less 1", excess, excess > 0)


def _symmetric(theta: Array, dim: int) -> Array:
    A_DD = np.zeros((dim, dim))
    A_DD[np.triu_indices(dim)] = theta
    return A_DD + A_DD.T - np.diag(np.diag(A_DD))
