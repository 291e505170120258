"""Figure 4 of depth: random rotations at long contexts, the least risk by the number L of layers."""

from dataclasses import dataclass

import numpy as np

from icl.errors import whole
from icl.figures.claims import Claim, exact
from icl.figures.depth.computed import Computed, own, reached
from icl.figures.figure import Layout, Panels, Records
from icl.figures.style import BLUE, ORANGE
from icl.theory.depth.flow import Spectrum

TAIL = 1e-6  # the sum over k > 4000 is an integral: from 16,000 on it changes slopes and ratio by 1e-8


@dataclass(eq=False)
class Fig4(Computed):
    doublings: int
    layout = Layout(size=(3.6, 2.7))

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("figure.doublings", self.doublings, 3, 8)

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
        layers_L = arrays["layers_L"]
        for (name, slope), color in zip(self._exponents.items(), (ORANGE, BLUE), strict=True):
            risk_L = arrays[f"{name}_L"]
            line_L = risk_L[-1] * (layers_L / layers_L[-1]) ** slope
            axes.plot(layers_L, risk_L, "o-", color=color, label=f"{name} layers")
            axes.plot(layers_L, line_L, ":", color=color, label=f"$L^{{{slope:.3g}}}$")
        axes.set(xlabel="layers L", ylabel="least risk", xscale="log", yscale="log")
        axes.legend()

    def claims(self, records: Records) -> list[Claim]:
        arrays, found = records["computed"].weights, []
        for name, slope in self._exponents.items():
            slopes = np.diff(np.log2(arrays[f"{name}_L"])).tolist()
            claim = f"over the last doubling of L {name} layers have the slope {slope:.3g} within 5 %"
            off = exact(abs(slopes[-1] / slope - 1), TAIL)
            found.append(reached(claim, {"slopes, by doubling": slopes}, off, 0.05))
        ratio_L = arrays["shared_L"] / arrays["separate_L"]
        decided = exact(ratio_L[1:], TAIL * ratio_L[1:]).above(1.0, "ratios of the risks above 1")
        claim = "from two layers on separate ones have the lower risk"
        return [*found, own(claim, {"ratio": float(ratio_L[-1])}, decided)]
