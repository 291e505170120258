"""Figure 3 of depth: random rotations, layers from equal and from unequal starts.

L layers, T times.
"""

from dataclasses import dataclass

import numpy as np

from icl.errors import real, whole
from icl.figures.claims import Claim, searched
from icl.figures.depth.computed import Computed, reached
from icl.figures.figure import Layout, Panels, Records
from icl.figures.style import BLUE, GREY, ORANGE, exact_line, log_axis, shared_legend
from icl.theory.depth.flow import Spectrum
from icl.theory.roots import real_roots
from icl.theory.wishart import best_polynomial

START, TIMES, CLOSE = 0.1, np.logspace(0, 5, 401), 1e-3


@dataclass(eq=False)
class Fig3(Computed):
    layers: int
    dim: int
    apart: float
    layout = Layout(("risk", "steps"), (3.2, 2.5))

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("figure.layers", self.layers, 2, 8)
        whole("figure.dim", self.dim, self.layers + 1, 64)
        real("figure.apart", self.apart, 1e-6)  # the solver takes steps that differ by less for equal ones

    def compute(self) -> dict[str, np.ndarray]:
        L, law = self.layers, Spectrum.power(self.nu, self.beta, self.dim)
        starts = {"equal": np.ones(L), "free": 1 + self.apart * np.linspace(-1, 1, L)}
        paths = {name: law.flow(START * start_L, TIMES) for name, start_L in starts.items()}
        best, least = best_polynomial(law.moments(2 * L + 1), L)
        return {
            **{f"{name}_TL": path_TL for name, path_TL in paths.items()},
            **{f"{name}_T": law.risk(path_TL) for name, path_TL in paths.items()},
            "saddle": np.array(law.best_shared(L)),  # the step and the risk
            "least": np.array([float(least)]),
            "best_L": np.array(sorted(1 / float(root) for root in real_roots(best) if root > 0)),
        }

    def draw(self, panels: Panels, records: Records) -> None:
        arrays, (risk, steps) = records["computed"].weights, panels.values()
        (step, saddle), (least,) = arrays["saddle"], arrays["least"]
        lines = {"equal": ("equal steps, or shared", ORANGE), "free": ("steps almost equal", BLUE)}
        for name, (label, color) in lines.items():
            risk.plot(TIMES, arrays[f"{name}_T"], color=color, label=f"from {label}")
            steps.plot(TIMES, arrays[f"{name}_TL"], color=color)
        exact_line(risk, saddle, "saddle", color=GREY)
        exact_line(risk, least, "minimum")
        exact_line(steps, step, "", color=GREY)
        for best in arrays["best_L"]:
            exact_line(steps, best, "")
        risk.set(ylabel="risk")
        steps.set(ylabel="steps $\\gamma_l / L$")
        for axes in panels.values():
            log_axis(axes)
            axes.set(xlabel="time t", xscale="log")
        shared_legend(panels.values())

    def claims(self, records: Records) -> list[Claim]:
        arrays = records["computed"].weights
        (step, saddle), (least,) = arrays["saddle"].tolist(), arrays["least"].tolist()
        held = float(np.abs(arrays["equal_TL"][-1] / step - 1).max())
        off = float(np.abs(np.sort(arrays["free_TL"][-1]) / arrays["best_L"] - 1).max())
        return [
            reached(
                "from equal steps the flow ends at the best shared step",
                {"risk": float(arrays["equal_T"][-1]), "least": saddle, "share off of the step": held},
                searched(held),
                CLOSE,
            ),
            reached(
                "from unequal steps it leaves that plateau and ends at the minimum",
                {"risk": float(arrays["free_T"][-1]), "least": least, "share off of the steps": off},
                searched(off),
                CLOSE,
            ),
        ]
