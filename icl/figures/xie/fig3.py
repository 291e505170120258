"""Figure 3 of xie: what a prior mean costs linear attention without a guess."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from icl.figures.claims import Claim
from icl.figures.curves import Level, Rows, draw_panels, table
from icl.figures.style import BLUE, log_axis, panels
from icl.figures.xie import series
from icl.figures.xie.claims import closed_form, linear, minibatches, not_below, reached
from icl.figures.xie.series import Line, Points
from icl.runs.record import RunRecord

Records = Mapping[str, RunRecord]


class Fig3:
    caption = (
        "Multi-head linear attention with y_q = 0 and d + 1 heads, by the squared norm of the prior mean w*. "
        "(a) Exact risk during training; mean over the seeds and the range between them. (b) Where every "
        "seed ended; dotted, the least risk of any number of heads, GD + 2|w*|^2/(dC + 2); dashed, one step "
        "of gradient descent from w*, whose risk does not depend on w*. At laptop scale training is on the "
        "population risk, and the dotted curves of (a) are short runs on fresh tasks each step, as the paper "
        "trained, with fewer steps and a larger rate. The paper's rate and batch size are not in our copy of "
        "its text; those at paper scale are a guess."
    )

    def draw(self, records: Records) -> Figure:
        exact = records["exact"].weights
        figure, axes = panels(1, 2, (3.1, 2.2))
        by_panel = dict(zip("ab", axes[0], strict=True))
        draw_panels(by_panel, self.drawn(records))
        by_panel["a"].set(title=f"(a) training, $H = {int(exact['heads'])}$", ylabel="risk")
        series.step_axis(by_panel["a"], exact["steps_S"][-1])
        log_axis(by_panel["a"])
        series.legend(by_panel["a"], loc="upper left", bbox_to_anchor=(1.0, 1.0))
        by_panel["b"].set(title="(b) final risk", xlabel=r"$\|w^*\|^2$", ylabel="risk")
        by_panel["b"].legend(loc="upper left")
        return figure

    def table(self, records: Records) -> Rows:
        return table(self.drawn(records))

    def drawn(self, records: Records) -> list[Any]:
        exact = records["exact"].weights
        squared_X, gd = exact["squared_X"], float(exact["gd"])
        return [
            *series.losses("a", r"$\|w^*\|^2$", "squared_X", exact),
            Level("a", "one-step GD", gd),
            Points("b", "trained", BLUE, squared_X, exact["risk_XRS"][..., -1]),
            Line("b", "any heads, least risk", squared_X, _stated(exact), {"linestyle": ":"}),
            Level("b", "one-step GD", gd),
        ]

    def claims(self, records: Records) -> list[Claim]:
        exact = records["exact"].weights
        squared_X, final_XR = exact["squared_X"], exact["risk_XRS"][..., -1]
        least_X, gd = exact["any_heads_X"], float(exact["gd"])
        return [
            closed_form(
                "the least risk of any number of heads is that of one-step GD + 2|w*|^2/(dC + 2): equal at "
                "w* = 0 only",
                least_X,
                _stated(exact),
            ),
            linear("|w*|^2", squared_X, final_XR - gd, float(exact["slope"])),
            reached(
                "training ends at the least risk", final_XR, least_X, [f"|w*|^2 = {s:g}" for s in squared_X]
            ),
            not_below("one-step GD is a lower bound, strict for w* != 0", final_XR, least_X),
            *minibatches(exact, "squared_X", "|w*|^2", least_X),
        ]


def _stated(exact: Mapping[str, np.ndarray]) -> np.ndarray:
    return exact["gd"] + exact["slope"] * exact["squared_X"]
