"""Figure 3 of depth: random rotations, shared layers, separate ones from equal and from unequal starts.

L layers, T times.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from icl.errors import real, whole
from icl.figures.claims import Claim, exact
from icl.figures.depth.computed import Computed, own
from icl.figures.figure import Layout, Panels, Records
from icl.figures.style import BLUE, GREY, ORANGE, exact_line, log_axis, shared_legend
from icl.theory.depth.flow import Spectrum
from icl.theory.depth.steps import atoms
from icl.theory.rationals import rational
from icl.theory.roots import real_roots
from icl.theory.wishart import best_polynomial

START, POINTS = 0.1, 400


@dataclass(eq=False)
class Fig3(Computed):
    layers: int
    dim: int
    apart: float
    time: float
    layout = Layout(("risk", "steps"), (3.2, 2.5))

    def __post_init__(self) -> None:
        super().__post_init__()
        self.layers, self.dim = (
            whole("figure.layers", self.layers, 2, 8),
            whole("figure.dim", self.dim, 2, 64),
        )
        self.apart = real("figure.apart", self.apart, 0, open_low=True)
        self.time = real("figure.time", self.time, 1)

    def compute(self) -> dict[str, np.ndarray]:
        L, law = self.layers, Spectrum.power(self.nu, self.beta, self.dim).normalised()
        times_T = np.logspace(0, np.log10(self.time), POINTS)
        ones_L = np.ones(L)
        equal_TL = law.flow(START * ones_L, times_T)
        free_TL = law.flow(START * (1 + self.apart * np.linspace(-1, 1, L)), times_T)
        values, weights = ([rational(float(x)) for x in of] for of in (law.lambda_K, law.weight_K))
        best, least = best_polynomial(atoms(values, weights, 2 * L + 1), L)
        return {
            "times_T": times_T,
            "equal_TL": equal_TL,
            "free_TL": free_TL,
            "equal_T": law.risk(equal_TL),
            "free_T": law.risk(free_TL),
            "saddle": np.array(law.best_shared(L)),  # the step and the risk
            "least": np.array([float(least)]),
            "best_L": np.array([1 / float(root) for root in real_roots(best) if root > 0]),
        }

    def draw(self, panels: Panels, records: Records) -> None:
        arrays, (risk, steps) = records["computed"].weights, panels.values()
        times_T, (step, saddle) = arrays["times_T"], arrays["saddle"]
        risk.plot(times_T, arrays["equal_T"], color=ORANGE, label="from equal steps, or shared")
        risk.plot(times_T, arrays["free_T"], color=BLUE, label="from steps almost equal")
        exact_line(risk, saddle, "saddle", color=GREY)
        exact_line(risk, arrays["least"][0], "minimum")
        steps.plot(times_T, arrays["equal_TL"][:, 0], color=ORANGE)
        steps.plot(times_T, arrays["free_TL"], color=BLUE)
        exact_line(steps, step, "", color=GREY)
        for best in arrays["best_L"]:
            exact_line(steps, best, "")
        risk.set(ylabel="risk")
        steps.set(
            ylabel="steps $\\gamma_l / L$",
        )
        for axes in panels.values():
            log_axis(axes)
            axes.set(xlabel="time t", xscale="log")
        shared_legend(panels.values())

    def claims(self, records: Records) -> list[Claim]:
        arrays = records["computed"].weights
        (step, saddle), least = arrays["saddle"], float(arrays["least"][0])
        ends = {name: float(arrays[f"{name}_T"][-1]) for name in ("equal", "free")}
        best_L = np.sort(arrays["best_L"])
        off = float(np.abs(np.sort(arrays["free_TL"][-1]) / best_L - 1).max())
        held = float(np.abs(arrays["equal_TL"][-1] / step - 1).max())
        return [
            own(
                "from equal steps the flow ends at the best shared step",
                {"risk": ends["equal"], "least shared": saddle, "share off of the step": held},
                exact(held).at_most(1e-3, "share off at most .001"),
            ),
            own(
                "from unequal steps it leaves that plateau and ends at the minimum",
                {"risk": ends["free"], "least separate": least, "share off of the steps": off},
                exact(off).at_most(1e-2, "share off at most .01 in every step"),
            ),
        ]
