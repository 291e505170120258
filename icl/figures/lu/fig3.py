"""Figure 3 of lu: where more examples raise the error, on new and on pretraining tasks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes

from icl.figures.claims import Claim, exact
from icl.figures.drawing import Drawing, Layout, Panels, Records
from icl.figures.items import Item, Rows
from icl.figures.style import RED, colour_bar

SEEN = 1e-9  # a rise that is no rounding


@dataclass(frozen=True, eq=False)
class LeastMap(Item):
    """The number of examples of the least error, where a larger one has more error; white elsewhere."""

    kappa_K: np.ndarray
    rho_N: np.ndarray
    alpha_NK: np.ndarray
    rise_NK: np.ndarray
    line: float

    def draw(self, axes: Axes) -> None:
        alpha_NK = np.where(self.rise_NK > SEEN, np.log10(self.alpha_NK), np.nan)
        mesh = axes.pcolormesh(self.kappa_K, self.rho_N, alpha_NK, cmap="GnBu", shading="nearest")
        colour_bar(mesh, axes, 0.8)
        axes.axvline(self.line, color=RED, linewidth=1)

    def rows(self) -> Rows:
        kappa, rho = np.meshgrid(self.kappa_K, self.rho_N)
        return self._points(
            x=kappa.ravel(), row=rho.ravel(), y=self.alpha_NK.ravel(), rise=self.rise_NK.ravel()
        )


class Fig3(Drawing):
    caption = (
        "Where more examples hurt, in the limit: colour, log10 of the alpha after which the error rises; "
        "white, no rise up to the largest alpha. Red: kappa = min(tau, 1)."
    )

    def layout_of(self, records: Records) -> Layout:
        return Layout(tuple("abcdefgh"[: len(records["exact"].weights["taus_P"])]), (2.5, 2.2))

    def items(self, records: Records) -> list[Item]:
        arrays = records["exact"].weights
        return [
            LeastMap(
                panel, "least error", arrays["kappas_K"], arrays["rhos_N"], arrays["alpha_PNK"][p],
                arrays["rise_PNK"][p], min(float(arrays["taus_P"][p]), 1.0),
            )
            for p, panel in enumerate(self.layout_of(records).panels)
        ]  # fmt: skip

    def decorate(self, panels: Panels, records: Records) -> None:
        arrays = records["exact"].weights
        for axes, tau, new in zip(panels.values(), arrays["taus_P"], arrays["new_P"], strict=True):
            error = "e_{ICL}" if new else "e_{IDG}"
            axes.set(title=f"${error}$, $\\tau$ = {tau:g}", xlabel="tasks $\\kappa = k / d$")
            axes.invert_yaxis()
        next(iter(panels.values())).set_ylabel("noise $\\rho$")

    def claims(self, records: Records) -> list[Claim]:
        arrays = records["exact"].weights
        kappa_K, rise_PNK, new_P = arrays["kappas_K"], arrays["rise_PNK"], arrays["new_P"].astype(bool)
        few_P = [
            float(rise_NK[:, kappa_K < min(tau, 1)].min())
            for rise_NK, tau, new in zip(rise_PNK, arrays["taus_P"], new_P, strict=True)
            if new
        ]
        old_NK, tau = rise_PNK[~new_P][0], float(arrays["taus_P"][~new_P][0])
        near = int(np.abs(kappa_K - tau).argmin())
        beyond = (arrays["rise_beyond_PNK"] > SEEN) & (rise_PNK <= SEEN)
        return [
            Claim.of(
                "on new tasks more examples hurt wherever kappa < min(tau, 1), at every noise",
                {"least rise": few_P},
                exact(few_P).above(SEEN, "largest rise of the error at each point, in every such panel"),
                trained=False,
            ),
            Claim.of(
                "with the most tasks more examples always help",
                {"largest rise": rise_PNK[:, :, -1].max(1).tolist()},
                exact(rise_PNK[:, :, -1].max(1)).at_most(SEEN, "no rise at any noise, in every panel"),
                trained=False,
            ),
            Claim.of(
                "on pretraining tasks more examples hurt around kappa = tau, but not with the fewest tasks",
                {"at tau, most noise": float(old_NK[-1, near]), "fewest": float(old_NK[:, 0].max())},
                exact([old_NK[-1, near], SEEN - old_NK[:, 0].max()]).above(0.0, "a rise at tau, none there"),
                trained=False,
            ),
            Claim.of(
                "the region goes on beyond the largest alpha that is drawn: with yet more examples errors "
                "rise at further points",
                {"share of points": beyond.mean((1, 2)).tolist()},
                exact(float(beyond.mean())).above(0.0, "share where only larger alphas show a rise"),
                trained=False,
                whose="project",
            ),
        ]
