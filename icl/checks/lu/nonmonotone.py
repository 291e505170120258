"""lu: more examples in a prompt can raise the error on new tasks: e_ICL is not monotone in alpha."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from icl.checks.lu.support.extrapolation import Means
from icl.checks.lu.support.pretraining import Pretraining
from icl.checks.lu.support.settings import MAX_DIM, RatiosWithPrompts
from icl.checks.numbers import exact, finding, sampled
from icl.checks.settings import integer
from icl.checks.verdict import QUANTILE, Control, Finding
from icl.theory.lu.limits import Limit

GRID = np.geomspace(0.1, 1e4, 501)  # of alpha


@dataclass(eq=False)
class Nonmonotone(RatiosWithPrompts):
    """Settings: of RatiosWithPrompts; e_ICL is followed over alpha, and simulated at its least and at
    `alpha` with `draws` at one `dim`."""

    alpha: float = 1000.0
    rho: float = 0.1
    dim: int = integer(24, 2, MAX_DIM, "the draws take days")
    draws: int = integer(200, 20, 10**6, "they take days")

    reference = "lu, Figure 3"
    claim = "With finitely many tasks and prompts, e_ICL is lower at fewer examples than at alpha d."

    def measure(self) -> Finding:
        best = best_alpha(self.limit)
        rise = self.limit.icl - replace(self.limit, alpha=best).icl
        means = Means.of([self.dim], self.draws, lambda d, rng: self._rise(d, best, rng), self.seed)
        mean, stderr = float(means.mean_C[0]), float(means.stderr_C[0])
        endless = replace(self.limit, tau=np.inf, kappa=np.inf)
        control = endless.icl - replace(endless, alpha=best_alpha(endless)).icl
        return finding(
            [
                exact(rise=rise)
                .means("e_ICL at alpha less the least at any smaller alpha, in the limit")
                .in_tests("integrals over the law of Marchenko and Pastur")
                .above(0.0, "0, where fewer examples are no better"),
                sampled(simulated_rise=mean)
                .means("same difference of errors after simulated pretraining")
                .above(0.0, "a 99.9 % interval above 0", half_width=QUANTILE * stderr, otherwise="undecided"),
                sampled(simulated_rise_stderr=stderr).means("standard error"),
                exact(best_alpha=best).means("alpha of the least e_ICL up to the given one").by_definition(),
            ],
            Control("the same with infinitely many tasks and prompts: e_ICL falls", control, control <= 0),
        )

    def _rise(self, dim: int, best: float, rng: np.random.Generator) -> float:
        """Draw both errors, each from tasks and prompts of its own."""
        errors = [
            Pretraining.at(dim, alpha, self.kappa, self.tau, self.rho).errors(rng)[0]
            for alpha in (self.alpha, best)
        ]
        return errors[0] - errors[1]


def best_alpha(limit: Limit) -> float:
    """Return the alpha on a grid, at most the limit's, at which e_ICL is least."""
    tried_A = [*(x for x in GRID.tolist() if x < limit.alpha), limit.alpha]
    return float(min(tried_A, key=lambda alpha: replace(limit, alpha=alpha).icl))
