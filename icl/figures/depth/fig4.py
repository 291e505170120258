"""Figure 4 of depth: random rotations at long contexts, the least risk by depth, shared and separate layers.

L numbers of layers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from icl.errors import whole
from icl.figures.claims import Claim, exact
from icl.figures.depth.computed import Computed, own
from icl.figures.figure import Layout, Panels, Records
from icl.figures.style import BLUE, ORANGE
from icl.theory.depth.flow import Spectrum


@dataclass(eq=False)
class Fig4(Computed):
    doublings: int
    layout = Layout(("",), (3.6, 2.7))

    def __post_init__(self) -> None:
        super().__post_init__()
        self.doublings = whole("figure.doublings", self.doublings, 3, 8)

    @property
    def _exponents(self) -> dict[str, float]:
        return {"shared": -self.beta, "separate": -self.beta * (2 + self.nu)}

    def compute(self) -> dict[str, np.ndarray]:
        law, layers_L = Spectrum.endless(self.nu, self.beta), 2 ** np.arange(self.doublings + 1)
        return {
            "layers_L": layers_L,
            "shared_L": np.array([law.best_shared(int(L))[1] for L in layers_L]),
            "separate_L": law.least_separate(int(layers_L[-1]))[layers_L],
        }

    def draw(self, panels: Panels, records: Records) -> None:
        arrays, (axes,) = records["computed"].weights, panels.values()
        for (name, slope), color in zip(self._exponents.items(), (ORANGE, BLUE), strict=True):
            layers_L, risk_L = arrays["layers_L"], arrays[f"{name}_L"]
            axes.plot(layers_L, risk_L, "o-", color=color, label=f"{name} layers")
            line_L = risk_L[-1] * (layers_L / layers_L[-1]) ** slope
            axes.plot(layers_L, line_L, ":", color=color, label=f"$L^{{{slope:g}}}$")
        axes.set(xlabel="layers L", ylabel="least risk", xscale="log", yscale="log")
        axes.legend()

    def claims(self, records: Records) -> list[Claim]:
        arrays = records["computed"].weights
        slopes = {
            name: np.log2(arrays[f"{name}_L"][1:] / arrays[f"{name}_L"][:-1]) for name in self._exponents
        }
        off = {name: abs(slopes[name] / slope - 1) for name, slope in self._exponents.items()}
        ratio = float(arrays["shared_L"][-1] / arrays["separate_L"][-1])
        return [
            own(
                f"over the last doubling of L the slope of {name} layers is {slope:g}, within a twentieth",
                {"slope": float(slopes[name][-1]), "of the doubling before": float(slopes[name][-2])},
                exact(off[name][-1]).at_most(0.05, "share off at most .05"),
                remarks=["For separate layers an upper bound of this order is proved, no lower one."],
            )
            for name, slope in self._exponents.items()
        ] + [
            own(
                "at the most layers separate ones have a risk below a hundredth of the shared ones'",
                {"ratio of the risks": ratio},
                exact(ratio).above(100.0, "ratio above 100"),
            )
        ]
