"""Figure 1 of lu: double descent in the number of pretraining prompts."""

from __future__ import annotations

import numpy as np

from icl.figures.claims import Claim, all_of, exact, sampled
from icl.figures.drawing import Drawing, Layout, Panels, Records
from icl.figures.items import Item
from icl.figures.lu.simulated import items, measured, shares_off
from icl.figures.style import log_axis

TITLES = {"icl": "new tasks", "idg": "pretraining tasks", "ridge": "new tasks, ridge $\\lambda$"}


class Fig1(Drawing):
    caption = (
        "Error after pretraining on n = tau d^2 prompts. Lines: the limit; marks: simulated, exact risk "
        "of the weights, mean and 95 % interval over draws. Left and middle: lambda = 10^-5, kappa d tasks; "
        "right: a new task in every prompt, at the middle alpha."
    )
    layout = Layout(tuple(TITLES), (2.6, 2.4))

    def items(self, records: Records) -> list[Item]:
        plain, ridge = records["plain"], records["ridge"]
        alphas = list(dict.fromkeys(plain.weights["settings_P5"][:, 0]))
        ridges = list(dict.fromkeys(ridge.weights["settings_P5"][:, 4]))
        labels = [f"$\\alpha$ = {alpha:g}" for alpha in alphas]
        return [
            *items("icl", plain, "new", labels),
            *items("idg", plain, "old", labels),
            *items("ridge", ridge, "new", [f"$\\lambda$ = {lam:g}" for lam in ridges]),
        ]

    def decorate(self, panels: Panels, records: Records) -> None:
        for name, axes in panels.items():
            axes.set(title=TITLES[name], xlabel="prompts $\\tau = n / d^2$")
            log_axis(axes)
        panels["icl"].legend()
        panels["ridge"].legend()
        panels["icl"].set_ylabel("error")

    def claims(self, records: Records) -> list[Claim]:
        plain, ridge = records["plain"], records["ridge"]
        series = len(plain.weights["new_curve_SX"])
        tau_X = plain.weights["x_P"][: len(plain.weights["x_P"]) // series]
        before, after = np.flatnonzero(tau_X < 1)[-1], np.flatnonzero(tau_X > 1)[0]
        curve_SX, x_X = plain.weights["new_curve_SX"], plain.weights["x_X"]
        peak_S = x_X[curve_SX.argmax(1)]
        mean_SXC, half_SXC = measured(plain, "new", series)
        drop_SC = mean_SXC[:, after] - mean_SXC[:, -1]
        drop_half_SC = half_SXC[:, after] + half_SXC[:, -1]
        far = np.abs(plain.weights["x_P"] - 1) > 0.2
        off_C = [float(np.median(shares_off(plain, "new", c)[far])) for c in (0, -1)]
        least, most = ridge.weights["new_curve_SX"][[0, -1]]
        return [
            Claim.of(
                "the error on new tasks peaks at tau = 1 in the limit, at every alpha",
                {"peaks": peak_S.tolist()},
                exact(np.abs(peak_S - 1)).at_most(0.02, "within .02, the distance of points of the curve"),
                trained=False,
            ),
            Claim.of(
                "simulated, too, more prompts help beyond the threshold: the error at the most prompts is "
                "lower than just above tau = 1",
                {"differences": drop_SC.tolist(), "tau": [float(tau_X[after]), float(tau_X[-1])]},
                sampled(drop_SC, drop_half_SC).above(0.0, "95 % intervals above 0 at every alpha and d"),
                trained=False,
            ),
            Claim.of(
                "simulated, too, more prompts hurt below the threshold",
                {"tau": [float(tau_X[0]), float(tau_X[before])]},
                sampled(mean_SXC[1:, before] - mean_SXC[1:, 0], half_SXC[1:, before] + half_SXC[1:, 0]).above(
                    0.0, "error just below tau = 1 above that at the fewest prompts, all but the least alpha"
                ),
                trained=False,
            ),
            Claim.of(
                "simulated errors approach the limit as d grows",
                {"median share off at the least d": off_C[0], "at the largest d": off_C[1]},
                sampled(off_C[1] / off_C[0]).below(
                    1.0, "the median share off falls, tau farther than .2 from 1"
                ),
                trained=False,
                whose="project",
            ),
            Claim.of(
                "a ridge removes the peak: at the largest lambda more prompts always help",
                {
                    "largest rise": float(np.diff(most).max()),
                    "of the least lambda": float(np.diff(least).max()),
                },
                all_of(
                    "the curve falls everywhere; that of the least lambda does not",
                    exact(np.diff(most)).at_most(0.0),
                    exact(float(np.diff(least).max())).above(0.0),
                ),
                trained=False,
            ),
        ]
