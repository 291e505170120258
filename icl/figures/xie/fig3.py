"""Figure 3 of xie: enough heads, no guess, and a prior mean of growing length."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from icl.errors import whole
from icl.figures.claims import Claim, exact
from icl.figures.figure import Layout, Panels, Records
from icl.figures.runner import Runner
from icl.figures.style import BLUE, exact_curve, exact_line, points
from icl.figures.training import KEY
from icl.figures.xie.runs import MAX_HEADS, Swept, ends_at, excess_by, linear
from icl.runs.record import RunRecord


@dataclass(kw_only=True, eq=False)
class Fig3(Swept):
    """Records: a run for every squared norm of w*, minibatch runs for some of them, and `exact`."""

    heads: int
    squared_norms: Sequence[float]
    minibatch_squared_norms: Sequence[float]

    layout = Layout("ab", (3.1, 2.2))
    id, run_name, values, array = "fig3", "w*^2=", "squared_norms", "squared_X"

    def __post_init__(self) -> None:
        super().__post_init__()
        whole(f"{KEY}.heads", self.heads, 1, MAX_HEADS)

    def train(self, runner: Runner, value: float, **how: Any) -> RunRecord:
        return self.lsa(runner, self.heads, prior=value, **how)

    def exact(self) -> Mapping[str, Any]:
        any_heads = [self.risk(s).convex_bound().value for s in self.squared_norms]
        return {"heads": self.heads, "any_heads_X": any_heads, **self.closed_forms}

    def draw(self, panels: Panels, records: Records) -> None:
        arrays = records["exact"].weights
        squared_X, gd = arrays["squared_X"], float(arrays["gd"])
        self.draw_losses(panels["a"], r"$\|w^*\|^2$", arrays)
        exact_line(panels["a"], gd, "one-step GD")
        panels["a"].set_title(f"(a) training, $H = {int(arrays['heads'])}$")
        panels["a"].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
        points(panels["b"], squared_X, arrays["risk_XRS"][..., -1], BLUE, "trained")
        least_X = gd + arrays["slope"] * squared_X
        exact_curve(panels["b"], squared_X, least_X, "any heads, least risk", linestyle=":")
        exact_line(panels["b"], gd, "one-step GD")
        panels["b"].set(title="(b) final risk", xlabel=r"$\|w^*\|^2$", ylabel="risk")
        panels["b"].legend(loc="upper left")

    def claims(self, records: Records) -> list[Claim]:
        arrays = records["exact"].weights
        squared_X, final_XR = arrays["squared_X"], arrays["risk_XRS"][..., -1]
        excess = excess_by("|w*|^2", squared_X, final_XR, arrays["any_heads_X"])
        return [
            linear("|w*|^2", squared_X, final_XR - arrays["gd"], float(arrays["slope"])),
            ends_at("training ends at the least risk", excess, exact),
        ]
