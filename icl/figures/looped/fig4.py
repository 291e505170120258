"""Figure 4 of looped: a matrix trained for L loops, applied more often."""

from icl.figures.claims import Claim, exact
from icl.figures.figure import Panels, Records
from icl.figures.looped.loops import ROUNDING, Loops, project_claim
from icl.figures.style import BLUE, GREEN, ORANGE, exact_curve, log_axis, shared_legend

SHOWN = {2: ORANGE, 3: BLUE, 4: GREEN}  # loops in training
FURTHER = 2  # loops beyond training at which the claims are


class Fig4(Loops):
    def draw(self, panels: Panels, records: Records) -> None:
        arrays = records["exact"].weights
        loops = arrays["loops_L"].tolist()
        for i, (title, axes) in enumerate(panels.items()):
            for L, color in SHOWN.items():
                if L in loops:
                    best_M, scalar_M = (
                        arrays[f"{x}_again_NLM"][i, loops.index(L)] for x in ("best", "scalar")
                    )
                    axes.plot(arrays["loops_M"], best_M, "o-", color=color, label=f"L = {L}, best")
                    axes.plot(arrays["loops_M"], scalar_M, "--", color=color, label=f"L = {L}, scalar")
            exact_curve(axes, loops, arrays["best_NL"][i], "trained for L'", linestyle="-")
            axes.set(title=title, xlabel="loops at test time, L'")
            log_axis(axes)
        next(iter(panels.values())).set_ylabel("risk")
        shared_legend(panels.values())

    def claims(self, records: Records) -> list[Claim]:
        arrays = records["exact"].weights
        loops = arrays["loops_L"].tolist()
        ratio_NLM = arrays["best_again_NLM"] / arrays["scalar_again_NLM"] - 1
        gain_NL = 1 - arrays["best_NL"] / arrays["scalar_NL"]
        excess = {
            f"n = {n}, L = {L}": float(ratio_NLM[i, loops.index(L), L - 1 : L + FURTHER].max())
            for i, n in enumerate(arrays["contexts_N"])
            for L in SHOWN
            if L in loops and gain_NL[i, loops.index(L)] > ROUNDING
        }
        growth_M = arrays["best_again_NLM"][0, loops.index(min(2, loops[-1]))]
        return [
            project_claim(
                f"up to {FURTHER} loops beyond training the rotation keeps a lower risk than the scalar",
                excess,
                exact(list(excess.values())).below(0.0, "excess over the scalar below 0 in every case"),
            ),
            project_claim(
                "more loops do not always help: at the shortest context the risk of L = 2 grows again",
                {"least": float(growth_M.min()), "at the most loops": float(growth_M[-1])},
                exact(growth_M[-1] / growth_M.min()).above(1.0, "the last risk above the least"),
            ),
        ]
