"""lu: the best weights of infinitely many pretraining prompts, exact at any d, against the limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from icl.checks.lu.support.extrapolation import ORDER, Means, compared
from icl.checks.lu.support.pretraining import Pretraining
from icl.checks.lu.support.settings import Ratios, rising
from icl.checks.numbers import tried
from icl.checks.settings import integer
from icl.checks.verdict import Finding
from icl.random import generator
from icl.theory.lu.finite import FiniteRisk, TaskMoments
from icl.theory.lu.limits import Limit

ROUNDING = "2^-52 times 64 (d + 1) operations, relative to the sum of the sizes of all terms"


@dataclass(eq=False)
class Optimum(Ratios):
    """Settings: of Ratios; dimensions, and `draws` of the tasks at the largest of them."""

    dims: Sequence[int] = (32, 48, 64, 96)
    draws: int = integer(100, 10, 10**6, "they take days")

    reference = "lu, the limit of many prompts, tau to infinity; the finite solve is this project's"
    claim = "The best weights for k given tasks, one solve of size d + 1, have e_ICL at tau = infinity."

    def __post_init__(self) -> None:
        super().__post_init__()
        self.dims = rising("check.dims", self.dims, 2, 1000, ORDER + 1)

    def measure(self) -> Finding:
        limit = Limit(self.alpha, self.kappa, np.inf, self.rho)
        worst = max(self._gradient(d) for d in self.dims)
        bound = 64 * 2.0**-52 * (self.dims[-1] + 1)
        return compared(
            Means.of(self.dims, self.draws, self._error, self.seed),
            limit.icl,
            "standard errors from the formula at half the examples, alpha / 2",
            replace(limit, alpha=self.alpha / 2).icl,
            tried(gradient=worst)
            .means("gradient of the risk at the solution, relative to its terms, the largest over dims")
            .at_most(bound, ROUNDING),
        )

    def _sizes(self, dim: int) -> Pretraining:
        return Pretraining.at(dim, self.alpha, self.kappa, 1.0, self.rho)

    def _risks(self, dim: int, rng: np.random.Generator) -> tuple[FiniteRisk, FiniteRisk]:
        """Return the risks on new tasks and on k that are drawn."""
        sizes = self._sizes(dim)
        w_KD = sizes.draw_tasks(rng, sizes.tasks or 1)
        new, old = TaskMoments.new(dim, self.rho), TaskMoments.of(w_KD, self.rho)
        return FiniteRisk(new, sizes.examples), FiniteRisk(old, sizes.examples)

    def _error(self, dim: int, rng: np.random.Generator) -> float:
        new, old = self._risks(dim, rng)
        return new.risk(old.best())

    def _gradient(self, dim: int) -> float:
        _, old = self._risks(dim, generator(self.seed, "check", dim))
        Gamma_DH = old.best()
        terms_DH = np.abs(Gamma_DH) @ np.abs(old.B_HH) + np.abs(old.A_HD.T)
        return float((np.abs(Gamma_DH @ old.B_HH - old.A_HD.T) / terms_DH).max())
