"""Figure 3 of lu: where more examples raise the error on new tasks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes

from icl.figures.claims import Claim, exact
from icl.figures.drawing import Drawing, Layout, Panels, Records
from icl.figures.items import Item, Line, Rows
from icl.figures.lu.simulated import COLORS
from icl.figures.style import colour_bar, log_axis

MAP = "where"


@dataclass(frozen=True, eq=False)
class RiseMap(Item):
    """log10 of 1 + rise on a grid of kappa and tau."""

    x_T: np.ndarray
    y_K: np.ndarray
    rise_KT: np.ndarray

    def draw(self, axes: Axes) -> None:
        mesh = axes.pcolormesh(
            self.x_T, self.y_K, np.log10(1 + self.rise_KT), cmap="Blues", shading="nearest"
        )
        colour_bar(mesh, axes, 0.8)

    def rows(self) -> Rows:
        T, K = np.meshgrid(self.x_T, self.y_K)
        return self._points(x=T.ravel(), row=K.ravel(), y=self.rise_KT.ravel())


class Fig3(Drawing):
    caption = (
        "Limit of the error on new tasks by the number of examples, for each kappa and tau; right: log10 "
        "of the error at the most examples over the least at any fewer. White: more examples always help."
    )

    def layout_of(self, records: Records) -> Layout:
        taus = records["exact"].weights["taus_T"]
        return Layout([*(f"tau {tau:g}" for tau in taus), MAP], (2.1, 2.2))

    def items(self, records: Records) -> list[Item]:
        arrays = records["exact"].weights
        lines: list[Item] = [
            Line(
                f"tau {tau:g}", f"$\\kappa$ = {kappa:g}", arrays["alphas_A"], arrays["icl_KTA"][k, t],
                {"color": COLORS[k % len(COLORS)], "linestyle": "-"},
            )
            for t, tau in enumerate(arrays["taus_T"])
            for k, kappa in enumerate(arrays["kappas_K"])
        ]  # fmt: skip
        return [
            *lines,
            RiseMap(MAP, "rise", arrays["grid_taus_T"], arrays["grid_kappas_K"], arrays["rise_KT"]),
        ]

    def decorate(self, panels: Panels, records: Records) -> None:
        for name, axes in panels.items():
            axes.set_xscale("log")
            if name == MAP:
                axes.set(title="rise, log10", xlabel="$\\tau$", ylabel="$\\kappa$", yscale="log")
                continue
            axes.set(title=f"$\\tau$ = {name.removeprefix('tau ')}", xlabel="examples $\\alpha = l / d$")
            log_axis(axes)
        first = next(iter(panels.values()))
        first.set_ylabel("$e_{ICL}$")
        first.legend()

    def claims(self, records: Records) -> list[Claim]:
        arrays = records["exact"].weights
        few = arrays["icl_KTA"][0]
        rise_T = few[:, -1] / few.min(1) - 1
        share = float((arrays["rise_KT"] > 0).mean())
        many = arrays["rise_KT"][-1, -1]
        return [
            Claim.of(
                "with the fewest tasks e_ICL is not monotone in alpha at any of the taus",
                {"rises": rise_T.tolist()},
                exact(rise_T).above(0.0, "error at the most examples above the least"),
                trained=False,
            ),
            Claim.of(
                "with many tasks and many prompts more examples always help",
                {"rise": float(many), "share of the grid where they hurt": share},
                exact(many).at_most(0.0, "the least error is that of the most examples"),
                trained=False,
            ),
        ]
