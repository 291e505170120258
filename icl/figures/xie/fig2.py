"""Figure 2 of xie: how many heads linear attention can use."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes

from icl.figures.claims import Claim, exact, searched
from icl.figures.drawing import Drawing, Layout, Panels, Records
from icl.figures.items import Item, Level, Line, Points
from icl.figures.style import BLUE, GREY, PURPLE, log_axis, shared_legend
from icl.figures.xie import series
from icl.figures.xie.claims import NEAR, ROUNDING, ends_at, minibatches, not_below

FLOOR = 1e-8  # of panel (c): what is below is drawn there
ENDS = "training ends at the least risk found with so many heads"


class Fig2(Drawing):
    caption = (
        "Multi-head linear attention with y_q = 0 and a prior mean w* != 0. (a) Exact risk during training, "
        "by number of heads; mean over the seeds and the range between them. (b) Where every seed ended, the "
        "least risk found with so many heads (alternating least squares), the least risk of any number of "
        "heads (a convex problem) and one step of gradient descent. (c) The same above the least risk of any "
        f"number of heads; values below {FLOOR:g} are plotted at it. Dotted: a closed form that no weights "
        "with so many heads can fall below. The paper's threshold is d + 1 heads; d suffice. At laptop "
        "scale training is on the population risk; the dotted curves of (a) are short runs on fresh tasks "
        "each step, as the paper trained, with fewer steps and a larger rate. The paper's rate and batch "
        "size are not in our copy of its text; those at paper scale are a guess."
    )

    layout = Layout("abc", (3.0, 2.3))

    def items(self, records: Records) -> list[Item]:
        arrays = records["exact"].weights
        heads_X, final_XR = arrays["heads_X"], arrays["risk_XRS"][..., -1]
        gd, least = float(arrays["gd"]), float(arrays["any_heads"])
        above_XR, above_X, certified_X = (
            np.maximum(risk - least, FLOOR) for risk in (final_XR, arrays["best_X"], arrays["certified_X"])
        )
        few_X = heads_X < arrays["dim"]
        dotted = {"color": GREY, "linestyle": ":"}
        return [
            *series.losses("a", "H", "heads_X", arrays),
            Level("a", "one-step GD", gd),
            Points("b", "trained", BLUE, heads_X, final_XR),
            Line("b", "least found", heads_X, arrays["best_X"], {"color": PURPLE, "linestyle": "-"}),
            Level("b", "any heads", least, ":"),
            Level("b", "one-step GD", gd),
            Points("c", "trained", BLUE, heads_X, above_XR),
            Line("c", "least found", heads_X, above_X, {"color": PURPLE, "linestyle": "-"}),
            Line("c", "lower bound", heads_X[few_X], certified_X[few_X], dotted),
        ]

    def decorate(self, panels: Panels, records: Records) -> None:
        arrays = records["exact"].weights
        panels["a"].set(title="(a) training", ylabel="risk")
        series.step_axis(panels["a"], arrays["steps_S"][-1])
        log_axis(panels["a"])
        series.legend(panels["a"], loc="upper left", bbox_to_anchor=(1.0, 1.05), labelspacing=0.15)
        panels["b"].set(title="(b) final risk", ylabel="risk")
        panels["c"].set(title="(c) above any heads' least risk", yscale="log", ylabel="excess risk")
        for panel in "bc":
            _heads_axis(panels[panel], arrays["heads_X"].tolist(), int(arrays["dim"]))
        parts = [panels["b"], panels["c"]]
        shared_legend(parts, panels["c"], loc="upper left", bbox_to_anchor=(1.0, 1.05))

    def claims(self, records: Records) -> list[Claim]:
        arrays = records["exact"].weights
        heads_X, final_XR = arrays["heads_X"], arrays["risk_XRS"][..., -1]
        names = [f"H = {h}" for h in heads_X]
        return [
            _every_head(arrays),
            *_enough(arrays),
            _gd(arrays),
            not_below(
                "no trained weights are below what so many heads allow", final_XR, arrays["certified_X"]
            ),
            ends_at(ENDS, final_XR, arrays["best_X"], names, searched),
            *_beyond(heads_X, final_XR, int(arrays["dim"])),
            *minibatches(arrays, "heads_X", "H", arrays["best_X"], searched),
        ]


def _heads_axis(axes: Axes, heads: list[int], dim: int) -> None:
    """Mark the paper's d + 1 heads, and d, where the least risk is reached."""
    axes.set(xlabel="heads $H$", xticks=heads if len(heads) < 8 else heads[::2])
    for x, text, side in ((dim, "$d$", "right"), (dim + 1, "$d+1$", "left")):
        axes.axvline(x, color=GREY, linewidth=0.6)
        axes.annotate(
            text, (x, 1), (-2 if side == "right" else 2, -1), xycoords=("data", "axes fraction"),
            textcoords="offset points", ha=side, va="top", fontsize=7, color=GREY,
        )  # fmt: skip


def _every_head(arrays: Mapping[str, np.ndarray]) -> Claim:
    """Compare what H heads cannot reach, in closed form, with what the next number was found to reach."""
    up_to_d = arrays["heads_X"] <= arrays["dim"]
    fall_X = (arrays["certified_X"][:-1] - arrays["best_X"][1:])[up_to_d[1:]]
    return Claim.of(
        "the least risk falls with the number of heads up to d",
        {
            "least found": arrays["best_X"][up_to_d].tolist(),
            "smallest certified fall": float(fall_X.min()) if len(fall_X) else float("nan"),
        },
        searched(float(fall_X.min()) if len(fall_X) else float("nan")).above(
            0.0, "a lower bound for H heads above the least risk found with the next number, up to H = d"
        ),
        trained=False,
    )


def _enough(arrays: Mapping[str, np.ndarray]) -> list[Claim]:
    """Theorem 1 and Figure 2b put the saturation at d + 1."""
    heads_X, dim, least = arrays["heads_X"], int(arrays["dim"]), float(arrays["any_heads"])
    excess = dict(zip(heads_X.tolist(), (arrays["best_X"] / least - 1).tolist(), strict=True))
    more = [value for h, value in excess.items() if h > dim]
    claims = []
    if more:
        claims.append(
            Claim.of(
                "d + 1 heads have the least risk of any number of heads (Theorem 1)",
                {"largest excess": max(more)},
                searched(max(more)).below(ROUNDING, f"below {ROUNDING:g} of the risk, rounding"),
                trained=False,
            )
        )
    if dim in excess:
        fewer = {f"H = {h}": value for h, value in excess.items() if h in (dim - 1, dim)}
        claims.append(
            Claim.of(
                "d + 1 heads are needed for the least risk: the vertical line of Figure 2b",
                {"relative excess": fewer},
                searched(excess[dim]).above(
                    ROUNDING, f"excess with d heads above {ROUNDING:g} of the risk, at the weights found"
                ),
                expected="fails",
                trained=False,
            )
        )
    return claims


def _gd(arrays: Mapping[str, np.ndarray]) -> Claim:
    gap = float(arrays["any_heads"] - arrays["gd"])
    return Claim.of(
        "one-step GD is a strict lower bound for any number of heads (5.1.1)",
        {"GD": float(arrays["gd"]), "any heads": float(arrays["any_heads"]), "gap": gap},
        exact(gap, arrays["rounding"]).above(
            0.0, "gap above 0 by more than the rounding of the convex problem"
        ),
        trained=False,
    )


def _beyond(heads_X: np.ndarray, final_XR: np.ndarray, dim: int) -> list[Claim]:
    if dim + 1 not in heads_X or heads_X.max() <= dim + 1:
        return []
    at_XR = final_XR[heads_X == dim + 1]
    change = float(np.abs(final_XR[heads_X > dim + 1] / at_XR.mean() - 1).max())
    fewer = float(final_XR[heads_X <= dim].min() / at_XR.mean() - 1) if (heads_X <= dim).any() else np.nan
    return [
        Claim.of(
            "more than d + 1 heads do not reduce the trained risk",
            {"largest change": change, "best of all runs with fewer": fewer},
            exact(change).below(NEAR, f"within {NEAR:.0%} of d + 1 heads"),
        )
    ]
