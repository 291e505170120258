"""Figure 1 of xie: the gap between one-step GD and one head, and how a trained guess closes it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from icl.figures.claims import Claim, all_of, exact, searched
from icl.figures.drawing import Drawing, Layout, Panels, Records
from icl.figures.items import Item, Line, Points
from icl.figures.style import BLUE, GREY, RED
from icl.figures.xie.claims import ends_at, not_below


class Fig1(Drawing):
    caption = (
        "Risk of one step of gradient descent from w*, of one head of linear attention without a guess (LSA, "
        "y_q = 0) and of y_q-LSA, one head with a trained guess y_q = <v, x_q>, against the norm of the "
        "prior mean. Marks: every trained seed's exact risk at the end of training. Lines are exact: GD's "
        "risk d(d+1)/(C+d+1), which is also y_q-LSA's least risk; the least risk of one head, by "
        "alternating least squares; dotted, the least risk of any number of heads, a convex problem. Rate "
        "and batch size of the paper are not in our copy of its text; those at paper scale are a guess."
    )

    layout = Layout(size=(3.4, 2.5))

    def items(self, records: Records) -> list[Item]:
        arrays = records["exact"].weights
        norm_X, norm_G = np.sqrt(arrays["squared_X"]), arrays["norm_G"]
        gd_G = np.full(norm_G.shape, float(arrays["gd"]))
        return [
            Points("", "LSA, trained", RED, norm_X, arrays["lsa_XR"]),
            Line("", "one head, least risk", norm_G, arrays["one_head_G"], {"color": RED}),
            Line(
                "", "any heads, least risk", norm_G, arrays["any_heads_G"], {"color": GREY, "linestyle": ":"}
            ),
            Points("", "$y_q$-LSA, trained", BLUE, norm_X, arrays["yq_lsa_XR"], "s"),
            Line("", "one-step GD", norm_G, gd_G),
        ]

    def decorate(self, panels: Panels, records: Records) -> None:
        panels[""].set(xlabel=r"norm of the prior mean, $\|w^*\|$", ylabel="risk")
        panels[""].legend(loc="upper left")

    def claims(self, records: Records) -> list[Claim]:
        arrays = records["exact"].weights
        gd, names = float(arrays["gd"]), [f"|w*|^2 = {s:g}" for s in arrays["squared_X"]]
        gd_X = np.full(len(names), gd)
        return [
            _gap(arrays),
            ends_at("trained y_q-LSA ends at the risk of one-step GD", arrays["yq_lsa_XR"], gd_X, names),
            not_below("one-step GD is a lower bound for y_q-LSA (section 4.2)", arrays["yq_lsa_XR"], gd),
            _order(arrays),
            ends_at(
                "trained LSA ends at the least risk of one head",
                arrays["lsa_XR"],
                arrays["one_head_X"],
                names,
                searched,
            ),
        ]


def _gap(arrays: Mapping[str, np.ndarray]) -> Claim:
    """Between GD and the least risks, along the whole axis; at w* = 0 there is none."""
    one_G, any_G = (arrays[name] - arrays["gd"] for name in ("one_head_G", "any_heads_G"))
    return Claim.of(
        "'a persistent gap': any number of heads stays above one-step GD for w* != 0, one head further, and "
        "both gaps grow with w*",
        {"one head, from": float(one_G[0]), "to": float(one_G[-1]), "any heads, to": float(any_G[-1])},
        all_of(
            "the gap of any heads above 0 and at most that of one head, both growing from point to point",
            searched(any_G[1:].min()).above(0.0),
            searched((one_G - any_G)[1:].min()).above(0.0),
            searched(np.diff(one_G).min()).above(0.0),
            searched(np.diff(any_G).min()).above(0.0),
        ),
        trained=False,
    )


def _order(arrays: Mapping[str, np.ndarray]) -> Claim:
    """Compare trained weights: the worst y_q-LSA with the best LSA."""
    apart_X = (arrays["lsa_XR"].min(1) - arrays["yq_lsa_XR"].max(1))[arrays["squared_X"] > 0]
    return Claim.of(
        "trained y_q-LSA < trained LSA for every w* != 0, by more the longer w* is",
        {
            f"|w*|^2 = {s:g}": float(a)
            for s, a in zip(arrays["squared_X"][-len(apart_X) :], apart_X, strict=True)
        },
        exact(np.diff(apart_X, prepend=0).min()).above(
            0.0, "the best LSA seed above the worst y_q-LSA seed; differences growing"
        ),
    )
