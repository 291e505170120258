"""Figure 3 of xie: what a prior mean costs linear attention without a guess."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from icl.figures.claims import Claim
from icl.figures.drawing import Drawing, Layout, Panels, Records
from icl.figures.items import Item, Level, Line, Points
from icl.figures.style import BLUE, log_axis
from icl.figures.xie import series
from icl.figures.xie.claims import closed_form, ends_at, linear, minibatches, not_below


class Fig3(Drawing):
    caption = (
        "Multi-head linear attention with y_q = 0 and d + 1 heads, by the squared norm of the prior mean w*. "
        "(a) Exact risk during training; mean over the seeds and the range between them. (b) Where every "
        "seed ended; dotted, the least risk of any number of heads, GD + 2|w*|^2/(dC + 2); dashed, one step "
        "of gradient descent from w*, whose risk does not depend on w*. At laptop scale training is on the "
        "population risk, and the dotted curves of (a) are short runs on fresh tasks each step, as the paper "
        "trained, with fewer steps and a larger rate. The paper's rate and batch size are not in our copy of "
        "its text; those at paper scale are a guess."
    )

    layout = Layout("ab", (3.1, 2.2))

    def items(self, records: Records) -> list[Item]:
        arrays = records["exact"].weights
        squared_X, gd = arrays["squared_X"], float(arrays["gd"])
        return [
            *series.losses("a", r"$\|w^*\|^2$", "squared_X", arrays),
            Level("a", "one-step GD", gd),
            Points("b", "trained", BLUE, squared_X, arrays["risk_XRS"][..., -1]),
            Line("b", "any heads, least risk", squared_X, _closed_form(arrays), {"linestyle": ":"}),
            Level("b", "one-step GD", gd),
        ]

    def decorate(self, panels: Panels, records: Records) -> None:
        arrays = records["exact"].weights
        panels["a"].set(title=f"(a) training, $H = {int(arrays['heads'])}$", ylabel="risk")
        series.step_axis(panels["a"], arrays["steps_S"][-1])
        log_axis(panels["a"])
        series.legend(panels["a"], loc="upper left", bbox_to_anchor=(1.0, 1.0))
        panels["b"].set(title="(b) final risk", xlabel=r"$\|w^*\|^2$", ylabel="risk")
        panels["b"].legend(loc="upper left")

    def claims(self, records: Records) -> list[Claim]:
        arrays = records["exact"].weights
        squared_X, final_XR = arrays["squared_X"], arrays["risk_XRS"][..., -1]
        least_X, gd = arrays["any_heads_X"], float(arrays["gd"])
        return [
            closed_form(
                "the least risk of any number of heads is that of one-step GD + 2|w*|^2/(dC + 2): equal at "
                "w* = 0 only",
                least_X,
                _closed_form(arrays),
            ),
            linear("|w*|^2", squared_X, final_XR - gd, float(arrays["slope"])),
            ends_at(
                "training ends at the least risk", final_XR, least_X, [f"|w*|^2 = {s:g}" for s in squared_X]
            ),
            not_below("one-step GD is a lower bound, strict for w* != 0", final_XR, least_X),
            *minibatches(arrays, "squared_X", "|w*|^2", least_X),
        ]


def _closed_form(arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    return arrays["gd"] + arrays["slope"] * arrays["squared_X"]
