"""Figure 4 of xie: what a guess that misses the prior mean costs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from icl.figures.claims import Claim
from icl.figures.drawing import Drawing, Layout, Panels, Records
from icl.figures.items import Item, Line, Points
from icl.figures.style import BLUE, RED
from icl.figures.xie.claims import closed_form, ends_at, linear, not_below

KINDS = {"vector": "|v|^2", "bias": "b^2"}


class Fig4(Drawing):
    caption = (
        "Multi-head linear attention with d + 1 heads, a prior of mean w* = 0 and a fixed guess "
        "y_q = <v, x_q> + b: the final risk above that of one step of gradient descent, for every trained "
        "seed. (a) b = 0; (b) v = 0. Dashed: the least any number of heads allows, 2/(dC + 2) for each unit "
        "of |v|^2 or b^2. A guess with a bias needs d heads, as every guess (Theorem 1 of the paper: d + 1). "
        "The paper's rate and batch size are not in our copy of its text; those at paper scale are a guess."
    )

    layout = Layout("ab", (2.5, 2.1))

    def items(self, records: Records) -> list[Item]:
        arrays = records["exact"].weights
        items: list[Item] = []
        for panel, kind, color, marker in (("a", "vector", BLUE, "o"), ("b", "bias", RED, "s")):
            squared_X, gap_XR = arrays[f"{kind}_squared_X"], arrays[f"{kind}_risk_XR"] - arrays["gd"]
            items += [
                Points(panel, "trained", color, squared_X, gap_XR, marker),
                Line(panel, "any heads, least", squared_X, arrays["slope"] * squared_X),
            ]
        return items

    def decorate(self, panels: Panels, records: Records) -> None:
        panels["a"].set(title="(a) $b = 0$", xlabel=r"$\|v\|^2$", ylabel="risk above one-step GD")
        panels["b"].set(title="(b) $v = 0$", xlabel="$b^2$")
        for axes in panels.values():
            axes.legend(loc="upper left")

    def claims(self, records: Records) -> list[Claim]:
        arrays = records["exact"].weights
        return [claim for kind, square in KINDS.items() for claim in _claims(arrays, kind, square)]


def _claims(arrays: Mapping[str, np.ndarray], kind: str, square: str) -> list[Claim]:
    squared_X, risk_XR, least_X = (
        arrays[f"{kind}_{part}"] for part in ("squared_X", "risk_XR", "any_heads_X")
    )
    gd, slope = float(arrays["gd"]), float(arrays["slope"])
    return [
        closed_form(
            f"the least risk of any number of heads is that of one-step GD + 2 {square}/(dC + 2)",
            least_X,
            gd + slope * squared_X,
        ),
        linear(square, squared_X, risk_XR - gd, slope),
        ends_at(
            f"training ends at the least risk, by {square}",
            risk_XR,
            least_X,
            [f"{square} = {s:g}" for s in squared_X],
        ),
        not_below(f"no trained weights are below it, by {square}", risk_XR, least_X),
    ]
