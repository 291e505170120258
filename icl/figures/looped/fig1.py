"""Figure 1 of looped: risk against the number of loops."""

from __future__ import annotations

import numpy as np

from icl.figures.claims import Claim, exact
from icl.figures.drawing import Drawing, Layout, Panels, Records
from icl.figures.items import Item, Line
from icl.figures.style import BLUE, GREEN, GREY, ORANGE, log_axis

SERIES = {
    "plain_NL": ("plain gradient descent", {"color": GREY, "linestyle": ":", "marker": "v"}),
    "scalar_NL": ("one layer, best $a\\Sigma^{-1}$", {"color": ORANGE, "linestyle": "-", "marker": "s"}),
    "best_NL": ("one layer, best $A$", {"color": BLUE, "linestyle": "-", "marker": "o"}),
    "separate_NL": ("L layers", {"color": GREEN, "linestyle": "--", "marker": "^"}),
}
ROUNDING = 1e-9


class Fig1(Drawing):
    caption = (
        "Exact risk of one layer of the form (8) of Ahn et al. applied L times, d = 2, for each context "
        "length: the "
        "best multiple of Sigma^-1, and the best matrix found, which is a rotation times a number (equal to "
        "it "
        "where no rotation gains). Dashed, L layers that may differ, the optimum on multiples of Sigma^-1. "
        "Dotted, L equal steps of plain gradient descent, A a multiple of I, at the figure's Sigma."
    )

    def layout_of(self, records: Records) -> Layout:
        return Layout([f"{n}" for n in records["exact"].weights["contexts_N"]], (2.9, 2.5))

    def items(self, records: Records) -> list[Item]:
        arrays = records["exact"].weights
        loops_L = arrays["loops_L"]
        return [
            Line(f"{n}", label, loops_L, arrays[name][i], {"markersize": 3.5, "linewidth": 1.2} | style)
            for i, n in enumerate(arrays["contexts_N"])
            for name, (label, style) in SERIES.items()
        ]

    def decorate(self, panels: Panels, records: Records) -> None:
        for name, axes in panels.items():
            axes.set(title=f"n = {name}", xlabel="loops L")
            axes.set_xticks(records["exact"].weights["loops_L"])
            log_axis(axes)
        first = next(iter(panels.values()))
        first.set_ylabel("risk")
        first.legend(loc="lower left")

    def claims(self, records: Records) -> list[Claim]:
        arrays = records["exact"].weights
        gain_NL = 1 - arrays["best_NL"] / arrays["scalar_NL"]
        names = [f"n = {n}, L = {L}" for n in arrays["contexts_N"] for L in arrays["loops_L"]]
        off = np.abs(arrays["best_rational_NL"] / arrays["best_NL"] - 1)
        gains = dict(zip(names, gain_NL.ravel().tolist(), strict=True))
        above = arrays["best_NL"] / arrays["separate_NL"] - 1
        return [
            Claim.of(
                "at the most loops one matrix gains on the best multiple of Sigma^-1, at every context "
                "length",
                gains,
                exact(gain_NL[:, -1]).above(0.0, "gain above 0 at every context length"),
                trained=False,
                whose="project",
            ),
            Claim.of(
                "layers that may differ have the least risk of all, at every L and n",
                {"least excess of one matrix": float(above.min())},
                exact(above).above(-ROUNDING, "excess of one matrix over separate layers not below 0"),
                trained=False,
                whose="project",
            ),
            Claim.of(
                "the risks by the Gauss rule are those in rational numbers",
                {"largest relative difference": float(off.max())},
                exact(off).at_most(1e-6, "10^-6, of weights rounded to nine decimals"),
                trained=False,
                whose="project",
            ),
        ]
