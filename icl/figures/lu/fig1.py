"""Figure 1 of lu: double descent in the number of pretraining prompts."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.ticker import ScalarFormatter

from icl.errors import real, whole
from icl.figures.claims import Claim, all_of, exact, sampled
from icl.figures.figure import Layout, Panels, Records
from icl.figures.lu import simulated as lu
from icl.figures.runner import Runner


@dataclass(eq=False)
class Fig1(lu.Simulated):
    """Records: `plain`, for each alpha and tau; `ridge`, for each lambda and tau (and tau = 1) with a new
    task in every prompt at the middle alpha, without the largest of three dims."""

    taus: Sequence[float]
    ridges: Sequence[float]
    kappa: float
    rho: float
    draws: int
    layout = Layout(("new tasks", "pretraining tasks", "new tasks, ridge $\\lambda$"), (2.6, 2.4))

    def __post_init__(self) -> None:
        super().__post_init__()
        self.taus = lu.positive("taus", self.taus)
        self.ridges = lu.positive("ridges", self.ridges)
        self.kappa = real("figure.kappa", self.kappa, 0, open_low=True)
        self.rho = real("figure.rho", self.rho, 0)
        self.draws = whole("figure.draws", self.draws, 2, lu.MAX_DRAWS)

    def runs(self, runner: Runner) -> Records:
        plain = [lu.Setting(alpha, self.kappa, tau, self.rho) for alpha in self.alphas for tau in self.taus]
        middle, taus = self.alphas[len(self.alphas) // 2], sorted({*self.taus, 1.0})
        ridge = [lu.Setting(middle, np.inf, tau, self.rho, lam) for lam in self.ridges for tau in taus]
        return {
            "plain": self.simulated(runner, "plain", plain, "tau", self.draws),
            "ridge": self.simulated(runner, "ridge", ridge, "tau", self.draws, self.dims[:2]),
        }

    def draw(self, panels: Panels, records: Records) -> None:
        plain, ridge = records["plain"], records["ridge"]
        new, old, ridged = panels.values()
        alphas = [f"$\\alpha$ = {alpha:g}" for alpha in lu.levels(plain, "alpha")]
        lu.draw(new, plain, "new", alphas)
        lu.draw(old, plain, "old", alphas)
        lambdas = [f"$\\lambda$ = {_short(lam)}" for lam in lu.levels(ridge, "ridge")]
        lines = lu.draw(ridged, ridge, "new", lambdas, first_color=3)
        for title, axes in panels.items():
            axes.set(title=title, xlabel="prompts $\\tau = n / d^2$")
        new.set_ylabel("error")
        new.legend()
        ridged.legend(handles=lines)

    def claims(self, records: Records) -> list[Claim]:
        new, ridge = (lu.Errors.of(records[name], "new") for name in ("plain", "ridge"))
        before, after = np.flatnonzero(new.x_N < 1)[-1], np.flatnonzero(new.x_N > 1)[0]
        peak_S = new.x_X[new.curve_SX.argmax(1)]
        drop_SC, drop_half_SC = new.change(after, -1)
        rise_SC, rise_half_SC = (part[1:] for part in new.change(before, 0))
        limit_SN = records["plain"].weights["new_limit_P"].reshape(new.mean_SNC.shape[:2])
        off_SNC = np.abs(new.mean_SNC / limit_SN[..., None] - 1)[:, np.abs(new.x_N - 1) > 0.2]
        first, *_, last = np.median(off_SNC, axis=(0, 1)).tolist()
        least_X, most_X = np.diff(ridge.curve_SX[[0, -1]])
        return [
            lu.paper_claim(
                "the error on new tasks peaks at tau = 1 in the limit, at every alpha",
                {"peaks": peak_S.tolist()},
                exact(np.abs(peak_S - 1)).at_most(0.02, "within .02, the distance of points of the curve"),
            ),
            lu.paper_claim(
                "simulated, too, more prompts help beyond the threshold: the error at the most prompts is "
                "lower than just above tau = 1",
                {"differences": drop_SC.tolist(), "tau": new.x_N[[after, -1]].tolist()},
                sampled(drop_SC, drop_half_SC).above(0.0, "95 % intervals above 0 at every alpha and d"),
            ),
            lu.paper_claim(
                "simulated, too, more prompts hurt below the threshold",
                {"tau": new.x_N[[0, before]].tolist()},
                sampled(rise_SC, rise_half_SC).above(
                    0.0, "error just below tau = 1 above that at the fewest prompts, all but the least alpha"
                ),
            ),
            lu.project_claim(
                "simulated errors approach the limit as d grows",
                {"median share off at the least d": first, "at the largest d": last},
                sampled(last / first).below(1.0, "the median share off falls, tau farther than .2 from 1"),
            ),
            lu.paper_claim(
                "a ridge removes the peak: at the largest lambda more prompts always help",
                {"largest rise": float(most_X.max()), "of the least lambda": float(least_X.max())},
                all_of(
                    "the curve falls everywhere; that of the least lambda does not",
                    exact(most_X).at_most(0.0),
                    exact(least_X.max()).above(0.0),
                ),
            ),
        ]


def _short(number: float) -> str:
    return f"{number:g}" if number >= 1e-4 else f"${ScalarFormatter(useMathText=True).format_data(number)}$"
