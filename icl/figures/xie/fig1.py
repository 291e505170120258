"""Figure 1 of xie: the gap between one-step GD and one head, and how a trained guess closes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from icl.figures.claims import Claim, above
from icl.figures.drawing import Drawing, Layout, Panels, Records
from icl.figures.items import Item, Line, Points
from icl.figures.style import BLUE, GREY, RED
from icl.figures.xie.claims import not_below, reached
from icl.verdicts import joint


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
        exact = records["exact"].weights
        norm_X, norm_G = np.sqrt(exact["squared_X"]), exact["norm_G"]
        gd_G = np.full(norm_G.shape, float(exact["gd"]))
        return [
            Points("", "LSA, trained", RED, norm_X, exact["lsa_XR"]),
            Line("", "one head, least risk", norm_G, exact["one_head_G"], {"color": RED}),
            Line(
                "", "any heads, least risk", norm_G, exact["any_heads_G"], {"color": GREY, "linestyle": ":"}
            ),
            Points("", "$y_q$-LSA, trained", BLUE, norm_X, exact["yq_lsa_XR"], "s"),
            Line("", "one-step GD", norm_G, gd_G),
        ]

    def decorate(self, panels: Panels, records: Records) -> None:
        panels[""].set(xlabel=r"norm of the prior mean, $\|w^*\|$", ylabel="risk")
        panels[""].legend(loc="upper left")

    def claims(self, records: Records) -> list[Claim]:
        exact = records["exact"].weights
        gd, names = float(exact["gd"]), [f"|w*|^2 = {s:g}" for s in exact["squared_X"]]
        gd_X = np.full(len(names), gd)
        return [
            _gap(exact),
            reached("trained y_q-LSA ends at the risk of one-step GD", exact["yq_lsa_XR"], gd_X, names),
            not_below("one-step GD is a lower bound for y_q-LSA (section 4.2)", exact["yq_lsa_XR"], gd),
            _order(exact),
            replace(
                reached(
                    "trained LSA ends at the least risk of one head",
                    exact["lsa_XR"],
                    exact["one_head_X"],
                    names,
                ),
                kind="searched",
            ),
        ]


def _gap(exact: Mapping[str, np.ndarray]) -> Claim:
    """Between GD and the least risks, along the whole axis; at w* = 0 there is none."""
    one_G, any_G = (exact[name] - exact["gd"] for name in ("one_head_G", "any_heads_G"))
    return Claim(
        "'a persistent gap': any number of heads stays above one-step GD for w* != 0, one head further, and "
        "both gaps grow with w*",
        {"one head, from": float(one_G[0]), "to": float(one_G[-1]), "any heads, to": float(any_G[-1])},
        "the gap of any heads above 0 and at most that of one head, both growing from point to point",
        joint(
            [
                above(float(any_G[1:].min()), 0.0),
                above(float((one_G - any_G)[1:].min()), 0.0),
                above(float(np.diff(one_G).min()), 0.0),
                above(float(np.diff(any_G).min()), 0.0),
            ]
        ),
        trained=False,
        kind="searched",
    )


def _order(exact: Mapping[str, np.ndarray]) -> Claim:
    """Of trained weights: the worst y_q-LSA against the best LSA."""
    apart_X = (exact["lsa_XR"].min(1) - exact["yq_lsa_XR"].max(1))[exact["squared_X"] > 0]
    return Claim(
        "trained y_q-LSA < trained LSA for every w* != 0, by more the longer w* is",
        {
            f"|w*|^2 = {s:g}": float(a)
            for s, a in zip(exact["squared_X"][-len(apart_X) :], apart_X, strict=True)
        },
        "the best LSA seed above the worst y_q-LSA seed; differences growing",
        joint([above(float(np.diff(apart_X, prepend=0).min()), 0.0)]),
        kind="exact",
    )
