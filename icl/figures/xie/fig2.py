"""Figure 2 of xie: how many heads linear attention can use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from matplotlib.axes import Axes

from icl.figures.claims import Claim, above, below
from icl.figures.drawing import Drawing, Layout, Panels, Records
from icl.figures.items import Item, Level, Line, Points
from icl.figures.style import BLUE, GREY, PURPLE, log_axis, shared_legend
from icl.figures.xie import series
from icl.figures.xie.claims import NEAR, ROUNDING, minibatches, not_below, reached
from icl.verdicts import joint

FLOOR = 1e-8  # of panel (c): what is below is drawn there
ENDS = "training ends at the least risk found with so many heads"


class Fig2(Drawing):
    caption = (
        "Multi-head linear attention with y_q = 0 and a prior mean w* != 0. (a) Exact risk during training, "
        "by number of heads; mean over the seeds and the range between them. (b) Where every seed ended, the "
        "least risk found with so many heads (alternating least squares), the least risk of any number of "
        "heads (a convex problem) and one step of gradient descent. (c) The same above the least risk of any "
        f"number of heads; what is below {FLOOR:g} is drawn there. Dotted: a closed form that no weights "
        "with so many heads can fall below. The paper draws its line at d + 1 heads; d are enough. At laptop "
        "scale training is on the population risk; the dotted curves of (a) are short runs on fresh tasks "
        "each step, as the paper trained, with fewer steps and a larger rate. The paper's rate and batch "
        "size are not in our copy of its text; those at paper scale are a guess."
    )

    layout = Layout("abc", (3.0, 2.3))

    def items(self, records: Records) -> list[Item]:
        exact = records["exact"].weights
        heads_X, final_XR = exact["heads_X"], exact["risk_XRS"][..., -1]
        gd, least = float(exact["gd"]), float(exact["any_heads"])
        above_XR, above_X, certified_X = (
            np.maximum(risk - least, FLOOR) for risk in (final_XR, exact["best_X"], exact["certified_X"])
        )
        few_X = heads_X < exact["dim"]
        dotted = {"color": GREY, "linestyle": ":"}
        return [
            *series.losses("a", "H", "heads_X", exact),
            Level("a", "one-step GD", gd),
            Points("b", "trained", BLUE, heads_X, final_XR),
            Line("b", "least found", heads_X, exact["best_X"], {"color": PURPLE, "linestyle": "-"}),
            Level("b", "any heads", least, ":"),
            Level("b", "one-step GD", gd),
            Points("c", "trained", BLUE, heads_X, above_XR),
            Line("c", "least found", heads_X, above_X, {"color": PURPLE, "linestyle": "-"}),
            Line("c", "lower bound", heads_X[few_X], certified_X[few_X], dotted),
        ]

    def decorate(self, panels: Panels, records: Records) -> None:
        exact = records["exact"].weights
        panels["a"].set(title="(a) training", ylabel="risk")
        series.step_axis(panels["a"], exact["steps_S"][-1])
        log_axis(panels["a"])
        series.legend(panels["a"], loc="upper left", bbox_to_anchor=(1.0, 1.05), labelspacing=0.15)
        panels["b"].set(title="(b) final risk", ylabel="risk")
        panels["c"].set(title="(c) above any heads' least risk", yscale="log", ylabel="excess risk")
        for panel in "bc":
            _heads_axis(panels[panel], exact["heads_X"].tolist(), int(exact["dim"]))
        parts = [panels["b"], panels["c"]]
        shared_legend(parts, panels["c"], loc="upper left", bbox_to_anchor=(1.0, 1.05))

    def claims(self, records: Records) -> list[Claim]:
        exact = records["exact"].weights
        heads_X, final_XR = exact["heads_X"], exact["risk_XRS"][..., -1]
        names = [f"H = {h}" for h in heads_X]
        return [
            _every_head(exact),
            *_enough(exact),
            _gd(exact),
            not_below(
                "no trained weights are below what so many heads allow", final_XR, exact["certified_X"]
            ),
            replace(reached(ENDS, final_XR, exact["best_X"], names), kind="searched"),
            *_beyond(heads_X, final_XR, int(exact["dim"])),
            *(
                replace(claim, kind="searched")
                for claim in minibatches(exact, "heads_X", "H", exact["best_X"])
            ),
        ]


def _heads_axis(axes: Axes, heads: list[int], dim: int) -> None:
    """The paper's line at d + 1, and one where the least risk is reached."""
    axes.set(xlabel="heads $H$", xticks=heads if len(heads) < 8 else heads[::2])
    for x, text, side in ((dim, "$d$", "right"), (dim + 1, "$d+1$", "left")):
        axes.axvline(x, color=GREY, linewidth=0.6)
        axes.annotate(
            text, (x, 1), (-2 if side == "right" else 2, -1), xycoords=("data", "axes fraction"),
            textcoords="offset points", ha=side, va="top", fontsize=7, color=GREY,
        )  # fmt: skip


def _every_head(exact: Mapping[str, np.ndarray]) -> Claim:
    """What H heads cannot do, in closed form, against what the next number was found to do."""
    up_to_d = exact["heads_X"] <= exact["dim"]
    fall_X = (exact["certified_X"][:-1] - exact["best_X"][1:])[up_to_d[1:]]
    return Claim(
        "the least risk falls with the number of heads up to d",
        {
            "least found": exact["best_X"][up_to_d].tolist(),
            "smallest certified fall": float(fall_X.min()) if len(fall_X) else float("nan"),
        },
        "a lower bound for H heads above the least risk found with the next number, up to H = d",
        above(float(fall_X.min()) if len(fall_X) else float("nan"), 0.0),
        trained=False,
        kind="searched",
    )


def _enough(exact: Mapping[str, np.ndarray]) -> list[Claim]:
    """Theorem 1 and Figure 2b put the saturation at d + 1."""
    heads_X, dim, least = exact["heads_X"], int(exact["dim"]), float(exact["any_heads"])
    excess = dict(zip(heads_X.tolist(), (exact["best_X"] / least - 1).tolist(), strict=True))
    more = [value for h, value in excess.items() if h > dim]
    found = []
    if more:
        found.append(
            Claim(
                "d + 1 heads have the least risk of any number of heads (Theorem 1)",
                {"largest excess": max(more)},
                f"below {ROUNDING:g} of the risk, rounding",
                below(max(more), ROUNDING),
                trained=False,
                kind="searched",
            )
        )
    if dim in excess:
        fewer = {f"H = {h}": value for h, value in excess.items() if h in (dim - 1, dim)}
        found.append(
            Claim(
                "d + 1 heads are needed for the least risk: the vertical line of Figure 2b",
                {"relative excess": fewer},
                f"excess with d heads above {ROUNDING:g} of the risk, at the weights found",
                above(excess[dim], ROUNDING),
                expected="fails",
                trained=False,
                kind="searched",
            )
        )
    return found


def _gd(exact: Mapping[str, np.ndarray]) -> Claim:
    gap = float(exact["any_heads"] - exact["gd"])
    return Claim(
        "one-step GD is a strict lower bound for any number of heads (5.1.1)",
        {"GD": float(exact["gd"]), "any heads": float(exact["any_heads"]), "gap": gap},
        "gap above 0 by more than the rounding of the convex problem",
        above(gap, 0.0, float(exact["rounding"])),
        trained=False,
        kind="exact",
    )


def _beyond(heads_X: np.ndarray, final_XR: np.ndarray, dim: int) -> list[Claim]:
    if dim + 1 not in heads_X or heads_X.max() <= dim + 1:
        return []
    at_XR = final_XR[heads_X == dim + 1]
    change = float(np.abs(final_XR[heads_X > dim + 1] / at_XR.mean() - 1).max())
    fewer = float(final_XR[heads_X <= dim].min() / at_XR.mean() - 1) if (heads_X <= dim).any() else np.nan
    return [
        Claim(
            "training with more than d + 1 heads changes nothing",
            {"largest change": change, "best of all runs with fewer": fewer},
            f"within {NEAR:.0%} of d + 1 heads",
            joint([below(change, NEAR)]),
            kind="exact",
        )
    ]
