"""Figure 4 of xie: what a fixed guess y_q = <v, x_q> + b costs that misses the prior mean w* = 0."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from icl.errors import whole
from icl.figures.claims import Claim, exact
from icl.figures.figure import Layout, Panels, Records
from icl.figures.runner import Runner
from icl.figures.style import BLUE, RED, exact_curve, points
from icl.figures.training import KEY
from icl.figures.xie.runs import MAX_HEADS, Sized, ends_at, excess_by, final_risks, identity, linear, squares
from icl.runs.record import RunRecord

KINDS = {"vector": "|v|^2", "bias": "b^2"}


@dataclass(kw_only=True, eq=False)
class Fig4(Sized):
    """Records: a run for every |v|^2 at b = 0 and for every b^2 at v = 0, and `exact`."""

    heads: int
    squared_norms: Sequence[float]
    squared_biases: Sequence[float]

    layout = Layout("ab", (2.5, 2.1))

    def __post_init__(self) -> None:
        super().__post_init__()
        whole(f"{KEY}.heads", self.heads, 1, MAX_HEADS)
        self.squared_norms = squares("squared_norms", self.squared_norms, least=2)
        self.squared_biases = squares("squared_biases", self.squared_biases, least=2)

    def runs(self, runner: Runner) -> Records:
        vectors = {f"v^2={s:g}": self.lsa(runner, self.heads, guess=s) for s in self.squared_norms}
        biases = {f"b^2={s:g}": self.lsa(runner, self.heads, bias=s) for s in self.squared_biases}
        science = {"vectors": identity(vectors.values()), "biases": identity(biases.values())}
        exact = self.store(runner, "fig4_exact", science, lambda: self._exact(vectors, biases))
        return vectors | biases | {"exact": exact}

    def _exact(self, vectors: Mapping[str, RunRecord], biases: Mapping[str, RunRecord]) -> dict[str, Any]:
        return {
            "heads": self.heads,
            "dim": self.dim,
            "vector_squared_X": self.squared_norms,
            "vector_risk_XR": final_risks(vectors.values()),
            "vector_any_heads_X": [self.risk(guess=s).convex_bound().value for s in self.squared_norms],
            "bias_squared_X": self.squared_biases,
            "bias_risk_XR": final_risks(biases.values()),
            "bias_any_heads_X": [self.risk(bias=s).convex_bound().value for s in self.squared_biases],
            **self.closed_forms,
        }

    def draw(self, panels: Panels, records: Records) -> None:
        arrays = records["exact"].weights
        for panel, kind, color, marker in (("a", "vector", BLUE, "o"), ("b", "bias", RED, "s")):
            squared_X, gap_XR = arrays[f"{kind}_squared_X"], arrays[f"{kind}_risk_XR"] - arrays["gd"]
            points(panels[panel], squared_X, gap_XR, color, "trained", marker=marker)
            exact_curve(panels[panel], squared_X, arrays["slope"] * squared_X, "any heads, least")
            panels[panel].legend(loc="upper left")
        panels["a"].set(title="(a) $b = 0$", xlabel=r"$\|v\|^2$", ylabel="risk above one-step GD")
        panels["b"].set(title="(b) $v = 0$", xlabel="$b^2$")

    def claims(self, records: Records) -> list[Claim]:
        arrays = records["exact"].weights
        claims: list[Claim] = []
        excess: dict[str, np.ndarray] = {}
        for kind, square in KINDS.items():
            squared_X, risk_XR, least_X = (
                arrays[f"{kind}_{part}"] for part in ("squared_X", "risk_XR", "any_heads_X")
            )
            claims.append(linear(square, squared_X, risk_XR - arrays["gd"], float(arrays["slope"])))
            excess |= excess_by(square, squared_X, risk_XR, least_X)
        return [*claims, ends_at("training ends at the least risk", excess, exact)]
