"""Figure 2 of xie: training by number of heads, and the least risk each number allows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import fmpq
from matplotlib.axes import Axes

from icl.errors import real
from icl.figures.claims import Claim, exact, searched
from icl.figures.figure import Layout, Panels, Records
from icl.figures.runner import Runner
from icl.figures.style import BLUE, GREY, PURPLE, exact_curve, exact_line, points, shared_legend
from icl.figures.training import KEY, different
from icl.figures.xie.runs import MAX_HEADS, NEAR, Arrays, Swept, best_risk, ends_at, excess_by
from icl.runs.record import RunRecord
from icl.theory.numbers import as_float
from icl.theory.xie.heads import Heads

FLOOR = 1e-8  # of panel (c): what is below is drawn there
ROUNDING = 1e-9  # of a risk


@dataclass(kw_only=True, eq=False)
class Fig2(Swept):
    """Records: a run for every number of heads, a minibatch run for some of them, and `exact`."""

    heads: Sequence[int]
    squared_norm: float
    minibatch_heads: Sequence[int]

    layout = Layout("abc", (3.0, 2.3))
    id, run_name, values, array = "fig2", "H", "heads", "heads_X"

    def __post_init__(self) -> None:
        super().__post_init__()
        real(f"{KEY}.squared_norm", self.squared_norm, 0)

    def checked(self, name: str, values: Any, least: int) -> list[int]:
        return sorted(different(name, values, 1, MAX_HEADS, least=least))

    def train(self, runner: Runner, value: int, **how: Any) -> RunRecord:
        return self.lsa(runner, value, prior=self.squared_norm, **how)

    def exact(self) -> Mapping[str, Any]:
        risk = self.risk(self.squared_norm)
        bound = risk.convex_bound()
        unit = Heads([1] + [0] * (self.dim - 1), fmpq(1, self.context))
        lost_X = self.squared_norm * np.array([as_float(unit.lost(h)) for h in self.heads])
        return {
            "best_X": [best_risk(risk, h) for h in self.heads],
            "certified_X": bound.value + lost_X,
            "any_heads": bound.value,
            "rounding": bound.rounding,
            "gd": self.closed_forms["gd"],
        }

    def draw(self, panels: Panels, records: Records) -> None:
        arrays = records["exact"].weights
        heads_X, final_XR = arrays["heads_X"], arrays["risk_XRS"][..., -1]
        gd, least = float(arrays["gd"]), float(arrays["any_heads"])
        self.draw_losses(panels["a"], "H", arrays)
        exact_line(panels["a"], gd, "one-step GD")
        panels["a"].legend(loc="upper left", bbox_to_anchor=(1.0, 1.05), labelspacing=0.15)
        points(panels["b"], heads_X, final_XR, BLUE, "trained")
        panels["b"].plot(heads_X, arrays["best_X"], color=PURPLE, label="least found")
        exact_line(panels["b"], least, "any heads", linestyle=":")
        exact_line(panels["b"], gd, "one-step GD")
        panels["b"].set(title="(b) final risk", ylabel="risk")
        above_XR, above_X, certified_X = (
            np.maximum(risk - least, FLOOR) for risk in (final_XR, arrays["best_X"], arrays["certified_X"])
        )
        few_X = heads_X < arrays["dim"]
        points(panels["c"], heads_X, above_XR, BLUE, "trained")
        panels["c"].plot(heads_X, above_X, color=PURPLE, label="least found")
        exact_curve(
            panels["c"], heads_X[few_X], certified_X[few_X], "lower bound", color=GREY, linestyle="-."
        )
        panels["c"].set(title="(c) above any heads' least risk", yscale="log", ylabel="excess risk")
        for axes in (panels["b"], panels["c"]):
            _heads_axis(axes, heads_X.tolist(), int(arrays["dim"]))
        shared_legend([panels["b"], panels["c"]], panels["c"], loc="upper left", bbox_to_anchor=(1.0, 1.05))

    def claims(self, records: Records) -> list[Claim]:
        arrays = records["exact"].weights
        heads_X, final_XR = arrays["heads_X"], arrays["risk_XRS"][..., -1]
        return [
            _every_head(arrays),
            *_enough(arrays),
            _gd(arrays),
            ends_at(
                "training ends at the least risk found with so many heads",
                excess_by("H", heads_X, final_XR, arrays["best_X"]),
                searched,
            ),
            *_beyond(heads_X, final_XR, int(arrays["dim"])),
            *self.minibatches(arrays, "H", arrays["best_X"], searched),
        ]


def _heads_axis(axes: Axes, heads: list[int], dim: int) -> None:
    """Mark the paper's d + 1 heads, and d, where the least risk is reached."""
    axes.set(xlabel="heads $H$", xticks=heads if len(heads) < 8 else heads[::2])
    for x, text, side in ((dim, "$d$", "right"), (dim + 1, "$d+1$", "left")):
        axes.axvline(x, color=GREY, alpha=0.5)
        axes.annotate(
            text, (x, 1), (-2 if side == "right" else 2, -1), xycoords=("data", "axes fraction"),
            textcoords="offset points", ha=side, va="top", fontsize="small", color=GREY,
        )  # fmt: skip


def _every_head(arrays: Arrays) -> Claim:
    """Compare what H heads cannot reach, in closed form, with what the next number was found to reach."""
    up_to_d = arrays["heads_X"] <= arrays["dim"]
    fall_X = (arrays["certified_X"][:-1] - arrays["best_X"][1:])[up_to_d[1:]]
    least = float(fall_X.min()) if len(fall_X) else float("nan")
    return Claim.of(
        "the least risk falls with the number of heads up to d",
        {"least found": arrays["best_X"][up_to_d].tolist(), "smallest certified fall": least},
        searched(least).above(
            0.0, "a lower bound for H heads above the least risk found with the next number, up to H = d"
        ),
        trained=False,
    )


def _enough(arrays: Arrays) -> list[Claim]:
    """Claim how many heads suffice: Theorem 1 and Figure 2b say d + 1."""
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


def _gd(arrays: Arrays) -> Claim:
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
    return [
        Claim.of(
            "more than d + 1 heads do not reduce the trained risk",
            {"largest change": change},
            exact(change).below(NEAR, f"within {NEAR:.0%} of d + 1 heads"),
        )
    ]
