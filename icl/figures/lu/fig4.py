"""Figure 4 of lu: the gap between new tasks and pretraining tasks, of attention and of dMMSE."""

from __future__ import annotations

import numpy as np
from matplotlib.ticker import NullFormatter

from icl import quantiles
from icl.figures.claims import Claim, exact, sampled
from icl.figures.drawing import Drawing, Layout, Panels, Records
from icl.figures.items import Item
from icl.figures.lu.simulated import COLORS, TAIL, Intervals, items, measured
from icl.figures.style import log_axis


class Fig4(Drawing):
    caption = (
        "e_ICL - e_IDG by the number kappa d of pretraining tasks, tau a multiple of alpha. Left: linear "
        "attention; lines: the limit; marks: simulated. Right: dMMSE, the posterior mean over the "
        "pretraining tasks, at the largest d. Means and 95 % intervals over draws of the tasks."
    )
    layout = Layout(("attention", "dMMSE"), (2.8, 2.4))

    def items(self, records: Records) -> list[Item]:
        record, arrays = records["attention"], records["dmmse"].weights
        labels = [f"$\\alpha$ = {alpha:g}" for alpha in arrays["alphas_A"]]
        half_AK = quantiles.student(TAIL, self._draws(records) - 1) * arrays["gap_stderr_AK"]
        return [
            *items("attention", record, "gap", labels),
            *(
                Intervals(
                    "dMMSE", label, COLORS[a], arrays["kappas_K"], arrays["gap_AK"][a], half_AK[a], "o", label
                )
                for a, label in enumerate(labels)
            ),
        ]

    def decorate(self, panels: Panels, records: Records) -> None:
        for name, axes in panels.items():
            axes.set(title=name, xlabel="tasks $\\kappa = k / d$", ylabel="$e_{ICL} - e_{IDG}$")
            axes.set_xscale("log")
            axes.xaxis.set_minor_formatter(NullFormatter())
            log_axis(axes)
            axes.legend()

    def claims(self, records: Records) -> list[Claim]:
        record, arrays = records["attention"], records["dmmse"].weights
        curve_SX = record.weights["gap_curve_SX"]
        x_X = record.weights["x_X"]
        few, many = (np.array([np.interp(kappa, x_X, y_X) for y_X in curve_SX]) for kappa in (0.5, 5.0))
        series = len(curve_SX)
        gap_SXC, half_SXC = measured(record, "gap", series)
        fall_SC, fall_half_SC = gap_SXC[:, 0] - gap_SXC[:, -1], half_SXC[:, 0] + half_SXC[:, -1]
        half_AK = quantiles.student(TAIL, self._draws(records) - 1) * arrays["gap_stderr_AK"]
        at = int(np.abs(np.log(arrays["kappas_K"] / 5)).argmin())
        ratio_A = (arrays["gap_AK"][:, at] - half_AK[:, at]) / many
        return [
            Claim.of(
                "above kappa = 1 the gap of linear attention vanishes as examples and prompts grow",
                {"at kappa = 1/2": few.tolist(), "at kappa = 5": many.tolist()},
                exact(np.diff(many / few)).below(0.0, "gap at 5 over that at 1/2 falls with alpha"),
                trained=False,
            ),
            Claim.of(
                "simulated, the gap of linear attention falls with the number of tasks",
                {"falls": fall_SC.tolist()},
                sampled(fall_SC, fall_half_SC).above(0.0, "95 % intervals above 0 at every alpha and d"),
                trained=False,
            ),
            Claim.of(
                "dMMSE has no such transition: with several tasks a dimension its gap is many times larger",
                {"kappa": float(arrays["kappas_K"][at]), "ratio": ratio_A.tolist()},
                sampled(ratio_A).above(
                    3.0, "lower end of the 95 % interval above 3 times the limit at kappa = 5"
                ),
                trained=False,
            ),
        ]

    def _draws(self, records: Records) -> int:
        return int(records["attention"].weights["draws_C"][-1])
