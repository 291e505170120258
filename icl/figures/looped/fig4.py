"""Figure 4 of looped: a matrix trained for L loops, applied more often."""

from __future__ import annotations

import numpy as np

from icl.figures.claims import Claim, exact
from icl.figures.drawing import Drawing, Layout, Panels, Records
from icl.figures.items import Item, Line
from icl.figures.style import BLUE, GREEN, ORANGE, log_axis

COLOURS = (ORANGE, BLUE, GREEN)
SHOWN = (2, 3, 4)  # loops in training
FURTHER = 2  # loops beyond training at which the claims are


class Fig4(Drawing):
    caption = (
        "Exact risk of what is best for L loops, applied L' times, d = 2, for each context length: the best "
        "matrix "
        "(solid) and the best multiple of Sigma^-1 (dashed). Black, what is best for L' itself. Beyond some "
        "L' "
        "every risk grows: Gaussian prompts have no largest eigenvalue, and loops diverge on rare ones."
    )

    def layout_of(self, records: Records) -> Layout:
        return Layout([f"{n}" for n in records["exact"].weights["contexts_N"]], (2.9, 2.5))

    def items(self, records: Records) -> list[Item]:
        arrays = records["exact"].weights
        M, loops = arrays["loops_M"], arrays["loops_L"].tolist()
        items: list[Item] = []
        for i, n in enumerate(arrays["contexts_N"]):
            for L, colour in zip(SHOWN, COLOURS, strict=True):
                if L not in loops:
                    continue
                at = (i, loops.index(L))
                solid = {"color": colour, "linestyle": "-", "marker": "o", "markersize": 2.5}
                items.append(Line(f"{n}", f"L = {L}, best", M, arrays["best_again_NLM"][at], solid))
                dashed = solid | {"linestyle": "--", "marker": ""}
                items.append(Line(f"{n}", f"L = {L}, scalar", M, arrays["scalar_again_NLM"][at], dashed))
            itself = {"linestyle": "-", "linewidth": 0.7}
            items.append(Line(f"{n}", "trained for L'", arrays["loops_L"], arrays["best_NL"][i], itself))
        return items

    def decorate(self, panels: Panels, records: Records) -> None:
        for name, axes in panels.items():
            axes.set(title=f"n = {name}", xlabel="loops at test time, L'")
            log_axis(axes)
        first = next(iter(panels.values()))
        first.set_ylabel("risk")
        first.legend(loc="upper center", ncols=2, fontsize=5.5)

    def claims(self, records: Records) -> list[Claim]:
        arrays = records["exact"].weights
        loops = arrays["loops_L"].tolist()
        ratio = arrays["best_again_NLM"] / arrays["scalar_again_NLM"] - 1
        gains = arrays["b_NL"] > 0
        excess = {
            f"n = {n}, L = {L}": float(ratio[i, loops.index(L), L - 1 : L + FURTHER].max())
            for i, n in enumerate(arrays["contexts_N"])
            for L in SHOWN
            if L in loops and gains[i, loops.index(L)]
        }
        growth = arrays["best_again_NLM"][0, loops.index(min(SHOWN[0], loops[-1]))]
        return [
            Claim.of(
                f"up to {FURTHER} loops beyond training the rotation keeps a lower risk than the scalar",
                excess,
                exact(np.array(list(excess.values()))).below(
                    0.0, "excess over the scalar below 0 in every case"
                ),
                trained=False,
                whose="project",
            ),
            Claim.of(
                "more loops do not always help: at the shortest context the risk of L = 2 grows again",
                {"least": float(growth.min()), "at the most loops": float(growth[-1])},
                exact(float(growth[-1] / growth.min())).above(1.0, "the last risk above the least"),
                trained=False,
                whose="project",
            ),
        ]
