"""Figure 3 of lu: where more examples raise the error, on new and on pretraining tasks; formulas alone.

P panels, N values of rho, K of kappa.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from matplotlib.colors import LogNorm

from icl.errors import InputError, one_of, real, whole
from icl.figures.claims import Claim, exact
from icl.figures.figure import Figure, Layout, Panels, Records
from icl.figures.lu import simulated as lu
from icl.figures.runner import Runner
from icl.figures.style import RED, figure_of, shared_legend
from icl.progress import track
from icl.theory.lu.limits import plotted

BEYOND = 10.0 ** np.arange(4, 9)  # values of alpha far above those of the map
MOST_ALPHA = 1e6
ERRORS = ("icl", "idg")
SEEN = 1e-9  # a rise that is no rounding


@dataclass(eq=False)
class Fig3(Figure):
    """Record: `exact`, for each panel's tau and error and on a grid of kappa and rho: the largest rise of the
    error over its least at fewer examples, among alpha up to `alpha_most` (`rise_PNK`) and among larger ones
    as well (`rise_beyond_PNK`), and the alpha of this least error (`alpha_PNK`)."""

    taus: Sequence[float]
    errors: Sequence[str]
    alpha_most: float
    grid: int
    alphas: int

    def __post_init__(self) -> None:
        self.taus = lu.positive("taus", self.taus)
        errors = lu.of_panels("errors", self.errors, len(self.taus))
        self.errors = [one_of("figure.errors", error, ERRORS) for error in errors]
        self.alpha_most = real("figure.alpha_most", self.alpha_most, 1, open_low=True)
        if self.alpha_most > MOST_ALPHA:
            raise InputError(f"figure.alpha_most={self.alpha_most}: must be at most {MOST_ALPHA:g}")
        self.grid = whole("figure.grid", self.grid, 2, 500)
        self.alphas = whole("figure.alphas", self.alphas, 10, 1000)

    def runs(self, runner: Runner) -> Records:
        return {"exact": runner.store("lu/fig3", asdict(self), self._exact)}

    def _exact(self) -> dict[str, np.ndarray]:
        kappas, rhos = np.linspace(0.1, 2.1, self.grid), np.linspace(0.01, 1, self.grid)
        alphas = np.append(np.geomspace(0.01, self.alpha_most, self.alphas), self.alpha_most * BEYOND)
        panels = list(zip(self.taus, self.errors, strict=True))
        rows = track([(p, rho) for p in panels for rho in rhos], "maps", len(panels) * self.grid)
        found = [[self._at(*p, float(kappa), float(rho), alphas) for kappa in kappas] for p, rho in rows]
        table = np.array(found).reshape(len(panels), self.grid, self.grid, 3)
        return {
            "kappas_K": kappas,
            "rhos_N": rhos,
            "taus_P": np.array(self.taus),
            "new_P": np.array([error == "icl" for error in self.errors]),
            "rise_PNK": table[..., 0],
            "rise_beyond_PNK": table[..., 1],
            "alpha_PNK": table[..., 2],
        }

    def _at(
        self, tau: float, error: str, kappa: float, rho: float, alphas: np.ndarray
    ) -> tuple[float, float, float]:
        e_A = np.array([plotted(float(alpha), kappa, tau, rho)[ERRORS.index(error)] for alpha in alphas])
        rise_A = e_A / np.minimum.accumulate(e_A) - 1
        most = int(rise_A[: self.alphas].argmax())
        return float(rise_A[most]), float(rise_A.max()), float(alphas[e_A[: most + 1].argmin()])

    def layout_of(self, records: Records) -> Layout:
        return Layout(tuple("abcdefgh"[: len(records["exact"].weights["taus_P"])]), (2.5, 2.2))

    def draw(self, panels: Panels, records: Records) -> None:
        arrays = records["exact"].weights
        is_seen_PNK = arrays["rise_PNK"] > SEEN
        alpha_PNK = np.where(is_seen_PNK, arrays["alpha_PNK"], np.nan)
        seen = arrays["alpha_PNK"][is_seen_PNK]
        norm = LogNorm(seen.min(initial=1), seen.max(initial=10))
        for (name, axes), alpha_NK, tau, is_new in zip(
            panels.items(), alpha_PNK, arrays["taus_P"], arrays["new_P"], strict=True
        ):
            mesh = axes.pcolormesh(
                arrays["kappas_K"], arrays["rhos_N"], alpha_NK, norm=norm, cmap="viridis_r", rasterized=True
            )
            axes.axvline(min(tau, 1), color=RED, label=r"$\kappa = \min(\tau, 1)$")
            error = "ICL" if is_new else "IDG"
            axes.set(title=f"({name}) $e_{{{error}}}$, $\\tau$ = {tau:g}", xlabel="tasks $\\kappa = k / d$")
            axes.invert_yaxis()
        figure_of(axes).colorbar(mesh, ax=[*panels.values()], pad=0.02, label="examples $\\alpha$")
        next(iter(panels.values())).set_ylabel("noise $\\rho$")
        shared_legend(panels.values())

    def claims(self, records: Records) -> list[Claim]:
        arrays = records["exact"].weights
        kappa_K, rise_PNK, new_P = arrays["kappas_K"], arrays["rise_PNK"], arrays["new_P"].astype(bool)
        few_P = [
            float(rise_NK[:, kappa_K < min(tau, 1)].min())
            for rise_NK, tau in zip(rise_PNK[new_P], arrays["taus_P"][new_P], strict=True)
        ]
        old_NK, tau = rise_PNK[~new_P][0], float(arrays["taus_P"][~new_P][0])
        near, fewest = float(old_NK[-1, np.abs(kappa_K - tau).argmin()]), float(old_NK[:, 0].max())
        beyond = (arrays["rise_beyond_PNK"] > SEEN) & (rise_PNK <= SEEN)
        return [
            lu.paper_claim(
                "on new tasks more examples hurt wherever kappa < min(tau, 1), at every noise",
                {"least rise": few_P},
                exact(few_P).above(SEEN, "largest rise of the error at each point, in every such panel"),
            ),
            lu.paper_claim(
                "with the most tasks more examples always help",
                {"largest rise": rise_PNK[:, :, -1].max(1).tolist()},
                exact(rise_PNK[:, :, -1].max(1)).at_most(SEEN, "no rise at any noise, in every panel"),
            ),
            lu.paper_claim(
                "on pretraining tasks more examples hurt around kappa = tau, but not with the fewest tasks",
                {"at tau, most noise": near, "fewest": fewest},
                exact([near, SEEN - fewest]).above(0.0, "a rise at tau, none there"),
            ),
            lu.project_claim(
                "the region goes on beyond the largest alpha that is drawn: with yet more examples errors "
                "rise at further points",
                {"share of points": beyond.mean((1, 2)).tolist()},
                exact(beyond.mean()).above(0.0, "share where only larger alphas show a rise"),
            ),
        ]
