"""lu: more examples in a prompt can raise the error on new tasks: e_ICL is not monotone in alpha."""

from dataclasses import dataclass, replace

import numpy as np
from flint import arb, fmpq

from icl.checks.lu.sizes import LONG, MAX_DIM, Ratios
from icl.checks.statement import UNREFUTED, Measured, Sample, setting, sign
from icl.models.lu.pretraining import Pretraining
from icl.progress import track
from icl.random import generator
from icl.theory.blurred import Undecided
from icl.theory.lu.limits import Limit, plotted
from icl.theory.rationals import rational

GRID = np.geomspace(0.1, 1e4, 501).tolist()  # of alpha


@dataclass
class Nonmonotone(Ratios):
    """e_ICL is followed over alpha, and simulated at its least and at `alpha` with `draws` at one `dim`."""

    alpha: float = setting(1000.0, 1e-4, 1e4, most=1e4, beyond=LONG)
    tau: float = setting(0.5, 1e-4, 20.0, most=100.0, beyond=LONG)
    rho: float = setting(0.1, 0.0, 1.0)
    dim: int = setting(24, 2, 32, most=MAX_DIM, beyond=LONG)
    draws: int = setting(200, 20, 400, most=10**6, beyond="they take days")

    where, title = "Figure 3", "More examples can hurt"
    claim = "With finitely many tasks and prompts, e_ICL is lower at fewer examples than at alpha d."
    quote = "a figure of the published code; the paper's text was not at hand"
    formula = r"\exists \alpha' \lt \alpha:\enspace e_{\text{ICL}}(\alpha') \lt e_{\text{ICL}}(\alpha)"

    def expected(self) -> str:
        """Return UNREFUTED at a small rise, few covariates or tasks, or tau near 1: it may not be seen."""
        fewer = [alpha for alpha in GRID if alpha < self.alpha]
        errors = [plotted(alpha, self.kappa, self.tau, self.rho)[0] for alpha in (*fewer[::20], self.alpha)]
        if self.tau == 1 or errors[-1] <= min(errors):
            return "undecided"
        clear = self.dim >= 8 and abs(self.tau - 1) > 0.1 and errors[-1] > 1.1 * min(errors)
        return super().expected() if clear and self.kappa * self.dim >= 0.5 else UNREFUTED

    def measure(self, m: Measured) -> None:
        limit = Limit.at(self.alpha, self.kappa, self.tau, self.rho)

        def error(alpha: float) -> arb:
            return replace(limit, alpha=rational(alpha)).icl

        fewer = [alpha for alpha in GRID if alpha < self.alpha]
        best = min([*fewer, self.alpha], key=lambda alpha: error(alpha).mid())
        if best == self.alpha:
            return m.undecided("no smaller alpha on a grid has a lower e_ICL; a search may miss one")
        about = "e_ICL at alpha less that at the best smaller alpha found, in the limit"
        m.positive("rise", limit.icl - error(best), about, searched=True)
        endless = replace(limit, more=fmpq(0), fewer=fmpq(0))
        falls = endless.icl - replace(endless, alpha=rational(best)).icl
        m.control("the same with infinitely many tasks and prompts: e_ICL falls", falls, of="rise")
        ratios = self.kappa, self.tau, self.rho
        sizes = [Pretraining.at(self.dim, alpha, *ratios) for alpha in (self.alpha, best)]
        rng, draws = generator(self.seed, "check", self.dim), track(range(self.draws), "draws", self.draws)
        high_T, low_T = np.array([[at.errors(rng)[0] for at in sizes] for _ in draws]).T
        if sign(rise := Sample.of(high_T - low_T)) == -1:  # no refutation: the claim is of the limit
            raise Undecided(f"at d = {self.dim} the simulated error does not rise: check.dim takes more")
        about = "same difference of errors after simulated pretraining"
        m.positive("simulated_rise", rise, about)
