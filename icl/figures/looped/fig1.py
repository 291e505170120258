"""Figure 1 of looped: risk against the number of loops."""

from icl.figures.claims import Claim, exact
from icl.figures.figure import Panels, Records
from icl.figures.looped.loops import ROUNDING, Loops, project_claim
from icl.figures.style import BLUE, GREEN, GREY, ORANGE, log_axis, shared_legend

SERIES = {
    "plain_NL": ("plain gradient descent", GREY, "v:"),
    "scalar_NL": ("one layer, best $a\\Sigma^{-1}$", ORANGE, "s-"),
    "best_NL": ("one layer, best $A$", BLUE, "o-"),
    "separate_NL": ("L layers", GREEN, "^--"),
}


class Fig1(Loops):
    def draw(self, panels: Panels, records: Records) -> None:
        arrays = records["exact"].weights
        for i, (title, axes) in enumerate(panels.items()):
            for name, (label, color, style) in SERIES.items():
                axes.plot(arrays["loops_L"], arrays[name][i], style, color=color, label=label)
            axes.set(title=title, xlabel="loops L", xticks=arrays["loops_L"])
            log_axis(axes)
        next(iter(panels.values())).set_ylabel("risk")
        shared_legend(panels.values())

    def claims(self, records: Records) -> list[Claim]:
        arrays = records["exact"].weights
        gain_NL = 1 - arrays["best_NL"] / arrays["scalar_NL"]
        names = [f"n = {n}, L = {L}" for n in arrays["contexts_N"] for L in arrays["loops_L"]]
        above_NL = arrays["best_NL"] / arrays["separate_NL"] - 1
        return [
            project_claim(
                "at the most loops one matrix gains on the best multiple of Sigma^-1, at every context "
                "length",
                dict(zip(names, gain_NL.ravel().tolist(), strict=True)),
                exact(gain_NL[:, -1]).above(0.0, "gain above 0 at every context length"),
            ),
            project_claim(
                "layers that may differ have the least risk of all, at every L and n",
                {"least excess of one matrix": float(above_NL.min())},
                exact(above_NL).above(-ROUNDING, "excess of one matrix over separate layers not below 0"),
            ),
        ]
