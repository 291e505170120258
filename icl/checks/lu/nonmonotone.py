"""lu: more examples in a prompt can raise the error on new tasks: e_ICL is not monotone in alpha."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from flint import arb, fmpq

from icl.checks.lu.sizes import MAX_DIM, Ratios, means_of
from icl.checks.statement import Measured, Sample, setting
from icl.models.lu.pretraining import Pretraining
from icl.theory.lu.limits import Limit, plotted
from icl.theory.rationals import rational

GRID = np.geomspace(0.1, 1e4, 501).tolist()  # of alpha


@dataclass
class Nonmonotone(Ratios):
    """e_ICL is followed over alpha, and simulated at its least and at `alpha` with `draws` at one `dim`."""

    alpha: float = setting(1000.0, 1e-4, 1e4, most=1e4, beyond="the draws take days")
    tau: float = setting(0.5, 1e-4, 20.0, most=100.0, beyond="the draws take days")
    rho: float = setting(0.1, 0.0, 1.0)
    dim: int = setting(24, 2, 32, most=MAX_DIM, beyond="the draws take days")
    draws: int = setting(200, 20, 400, most=10**6, beyond="they take days")

    where, title = "Figure 3", "More examples can hurt"
    claim = "With finitely many tasks and prompts, e_ICL is lower at fewer examples than at alpha d."
    quote = "a figure of the published code; the paper's text was not at hand"
    formula = r"\exists \alpha' \lt \alpha:\enspace e_{\text{ICL}}(\alpha') \lt e_{\text{ICL}}(\alpha)"

    @property
    def _fewer(self) -> list[float]:
        return [alpha for alpha in GRID if alpha < self.alpha]

    def expected(self) -> str:
        errors = [
            plotted(alpha, self.kappa, self.tau, self.rho)[0] for alpha in (*self._fewer[::20], self.alpha)
        ]
        return "holds" if self.tau != 1 and errors[-1] > min(errors) else "undecided"

    def measure(self, m: Measured) -> None:
        limit = Limit.at(self.alpha, self.kappa, self.tau, self.rho)
        best = best_alpha(limit)
        if best == self.alpha:
            m.undecided("no smaller alpha on a grid has a lower e_ICL; a search may miss one")
        rise = limit.icl - replace(limit, alpha=rational(best)).icl
        about = "e_ICL at alpha less that at the best smaller alpha found, in the limit"
        if best < self.alpha:
            m.positive("rise", rise, about, searched=True)
            endless = replace(limit, more=fmpq(0), fewer=fmpq(0))
            falls = endless.icl - replace(endless, alpha=rational(best)).icl
            m.control("the same with infinitely many tasks and prompts: e_ICL falls", falls, of="rise")
            means = means_of([self.dim], self.draws, lambda d, rng: self._rise(d, best, rng), self.seed)
            risen = Sample(float(means.mean_C[0]), float(means.stderr_C[0]))
            m.positive("simulated_rise", risen, "same difference of errors after simulated pretraining")

    def _rise(self, dim: int, best: float, rng: np.random.Generator) -> float:
        """Draw both errors, each from tasks and prompts of its own."""
        high, low = (
            Pretraining.at(dim, alpha, self.kappa, self.tau, self.rho).errors(rng)[0]
            for alpha in (self.alpha, best)
        )
        return high - low


def best_alpha(limit: Limit) -> float:
    """Return the alpha on a grid, at most the limit's, at which e_ICL is least."""

    def error(alpha: float) -> arb:
        return replace(limit, alpha=rational(alpha)).icl.mid()

    most = float(limit.alpha.p) / float(limit.alpha.q)
    return min([*(x for x in GRID if x < most), most], key=error)
