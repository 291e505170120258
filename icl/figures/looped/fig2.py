"""Figure 2 of looped: the gain of the best shared matrix, by context length, loops and dimension.

The best a I + b K found, K the rotation by 90 degrees in some planes; its risk is exact. C dimensions, N
context lengths, L loops.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import product

import numpy as np
from matplotlib.colors import Normalize

from icl.errors import InputError, rising
from icl.figures.claims import Claim, exact
from icl.figures.figure import Figure, Layout, Panels, Records
from icl.figures.looped.loops import ROUNDING, gains, project_claim
from icl.figures.runner import Runner
from icl.figures.style import ON_DARK, ON_LIGHT, entry_text, figure_of, outline
from icl.theory.looped.equal_steps import EqualSteps
from icl.theory.looped.normal import MOST_LAYERS
from icl.theory.looped.plane import MAX_LAYERS

MAX_DIM = 20


@dataclass(eq=False)
class Fig2(Figure):
    """Record: `gains` of every cell, and the sign of the curvature at the best scalar."""

    dims: Sequence[int]
    contexts: Sequence[int]
    loops: Sequence[int]

    def __post_init__(self) -> None:
        self.dims = rising("figure.dims", self.dims, 2, MAX_DIM)
        self.contexts = rising("figure.contexts", self.contexts, 1, 10**9)
        self.loops = rising("figure.loops", self.loops, 1, MAX_LAYERS)
        if self.dims[-1] > 2 and self.loops[-1] > MOST_LAYERS:
            raise InputError(f"figure.loops={self.loops[-1]}: at most {MOST_LAYERS} beyond figure.dims=[2]")

    def runs(self, runner: Runner) -> Records:
        return {"gains": runner.store("looped/phase_diagram", asdict(self), self._gains)}

    def _gains(self) -> dict[str, np.ndarray]:
        named = {"dims_C": self.dims, "contexts_N": self.contexts, "loops_L": self.loops}
        cells = [EqualSteps(*cell) for cell in product(*named.values())]
        shape = [len(values) for values in named.values()]
        return {
            **{name: np.array(values) for name, values in named.items()},
            "gain_CNL": np.reshape(gains(cells), shape),
            "sign_CNL": np.reshape([one.curvature_sign() for one in cells], shape),
        }

    def layout_of(self, records: Records) -> Layout:
        return Layout([f"d = {d}" for d in records["gains"].weights["dims_C"]], (1.7, 2.4))

    def draw(self, panels: Panels, records: Records) -> None:
        arrays = records["gains"].weights
        gain_CNL, loops_L, contexts_N = arrays["gain_CNL"], arrays["loops_L"], arrays["contexts_N"]
        norm = Normalize(0, max(gain_CNL.max(), 1e-9))
        for (title, axes), gain_NL, sign_NL in zip(panels.items(), gain_CNL, arrays["sign_CNL"], strict=True):
            image = axes.imshow(gain_NL, norm=norm, cmap="Blues")
            for (i, j), gain in np.ndenumerate(gain_NL):
                color = ON_DARK if norm(gain) > 0.6 else ON_LIGHT
                axes.text(j, i, entry_text(gain), ha="center", va="center", color=color, size="x-small")
            outline(axes, np.argwhere(sign_NL < 0))
            axes.set_xticks(range(len(loops_L)), loops_L)
            axes.set_yticks(range(len(contexts_N)), contexts_N)
            axes.set(title=title, xlabel="loops L")
        next(iter(panels.values())).set_ylabel("context length n")
        figure_of(axes).colorbar(image, ax=[*panels.values()], pad=0.02, shrink=0.8, label="gain")

    def claims(self, records: Records) -> list[Claim]:
        arrays = records["gains"].weights
        gain, sign = arrays["gain_CNL"], arrays["sign_CNL"]
        saddle = gain[(sign < 0) & (arrays["loops_L"] > 1)]
        wider = gain[arrays["dims_C"] > 2][:, -1, -1]
        outside = gain[(sign > 0) & (gain > ROUNDING)]
        claims = [
            project_claim(
                "where the best multiple is a saddle, a matrix with an antisymmetric part has a lower risk",
                {"cells": len(saddle), "least gain": float(saddle.min(initial=1))},
                exact(saddle).above(0.0, "gain above 0 in every such cell"),
            ),
            project_claim(
                "in more dimensions, too, one matrix gains at the longest context and the most loops",
                {"gains": wider.tolist()},
                exact(wider).above(0.0, "gain above 0 in every dimension"),
            ),
            project_claim(
                "a rotation far from the multiples of Sigma^-1 may gain where the best of these is a local "
                "minimum",
                {"cells": len(outside), "largest gain there": float(outside.max(initial=0))},
                exact(len(outside)).above(0.0, "at least one such cell"),
            ),
        ]
        return claims if len(wider) else [claims[0], claims[2]]
