"""Figure 1 of xie: the gap between one-step GD and one head, and how a trained guess closes it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from icl.figures.claims import Claim, all_of, exact, searched
from icl.figures.figure import Layout, Panels, Records
from icl.figures.runner import Runner
from icl.figures.style import BLUE, GREY, RED, exact_curve, points
from icl.figures.xie.runs import Arrays, Sized, best_risk, ends_at, excess_by, final_risks, identity, squares
from icl.runs.record import RunRecord

GRID = 25  # points of the exact lines


@dataclass(kw_only=True, eq=False)
class Fig1(Sized):
    """Records: the runs at every squared norm of w*, and `exact`: final risks and the lines they lie on."""

    squared_norms: Sequence[float]

    layout = Layout(size=(3.4, 2.5))

    def __post_init__(self) -> None:
        super().__post_init__()
        self.squared_norms = squares("squared_norms", self.squared_norms, least=2)

    def runs(self, runner: Runner) -> Records:
        lsa = {f"lsa_{s:g}": self.lsa(runner, 1, prior=s) for s in self.squared_norms}
        yq_lsa = {f"yq_lsa_{s:g}": self.yq_lsa(runner, prior=s) for s in self.squared_norms}
        science = {"lsa": identity(lsa.values()), "yq_lsa": identity(yq_lsa.values())}
        exact = self.store(runner, "fig1_exact", science, lambda: self._exact(lsa, yq_lsa))
        return lsa | yq_lsa | {"exact": exact}

    def _exact(self, lsa: Mapping[str, RunRecord], yq_lsa: Mapping[str, RunRecord]) -> dict[str, Any]:
        norm_G, closed = np.linspace(0, self.squared_norms[-1] ** 0.5, GRID), self.closed_forms
        return {
            "squared_X": self.squared_norms,
            "lsa_XR": final_risks(lsa.values()),
            "yq_lsa_XR": final_risks(yq_lsa.values()),
            "one_head_X": [best_risk(self.risk(s), 1) for s in self.squared_norms],
            "norm_G": norm_G,
            "one_head_G": [best_risk(self.risk(float(norm**2)), 1) for norm in norm_G],
            "any_heads_G": closed["gd"] + closed["slope"] * norm_G**2,
            "gd": closed["gd"],
        }

    def draw(self, panels: Panels, records: Records) -> None:
        arrays, axes = records["exact"].weights, panels[""]
        norm_X, norm_G = np.sqrt(arrays["squared_X"]), arrays["norm_G"]
        points(axes, norm_X, arrays["lsa_XR"], RED, "LSA, trained")
        exact_curve(axes, norm_G, arrays["one_head_G"], "one head, least risk", color=RED)
        exact_curve(axes, norm_G, arrays["any_heads_G"], "any heads, least risk", color=GREY, linestyle=":")
        points(axes, norm_X, arrays["yq_lsa_XR"], BLUE, "$y_q$-LSA, trained", marker="s")
        exact_curve(axes, norm_G, np.full(norm_G.shape, float(arrays["gd"])), "one-step GD")
        axes.set(xlabel=r"norm of the prior mean, $\|w^*\|$", ylabel="risk")
        axes.legend(loc="upper left")

    def claims(self, records: Records) -> list[Claim]:
        arrays = records["exact"].weights
        one_head = excess_by("|w*|^2", arrays["squared_X"], arrays["lsa_XR"], arrays["one_head_X"])
        guess = excess_by("|w*|^2", arrays["squared_X"], arrays["yq_lsa_XR"], float(arrays["gd"]))
        return [
            _gap(arrays),
            ends_at("trained y_q-LSA ends at the risk of one-step GD", guess, exact),
            _order(arrays),
            ends_at("trained LSA ends at the least risk of one head", one_head, searched),
        ]


def _gap(arrays: Arrays) -> Claim:
    """Claim gaps between GD and the least risks along the whole axis; at w* = 0 there is none."""
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


def _order(arrays: Arrays) -> Claim:
    """Compare trained weights: the worst y_q-LSA with the best LSA."""
    longer_X = arrays["squared_X"] > 0
    apart_X = (arrays["lsa_XR"].min(1) - arrays["yq_lsa_XR"].max(1))[longer_X]
    named = zip(arrays["squared_X"][longer_X], apart_X, strict=True)
    return Claim.of(
        "trained y_q-LSA < trained LSA for every w* != 0, by more the longer w* is",
        {f"|w*|^2 = {s:g}": float(apart) for s, apart in named},
        exact(np.diff(apart_X, prepend=0).min()).above(
            0.0, "the best LSA seed above the worst y_q-LSA seed; differences growing"
        ),
    )
