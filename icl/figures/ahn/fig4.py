"""Figure 4 of ahn: the trained B_0 and B_1 of Figure 3."""

import numpy as np

from icl.figures.ahn.fig3 import Fig3, from_identity, multiples_of_identity, off_s
from icl.figures.claims import Claim
from icl.figures.figure import Layout, Panels, Records
from icl.figures.style import RED, heatmap


class Fig4(Fig3):
    def layout_of(self, records: Records) -> Layout:
        return Layout([f"B{i}" for i in range(records["run"].B.shape[1])], (1.9, 1.95))

    def draw(self, panels: Panels, records: Records) -> None:
        for i, (axes, B_DD) in enumerate(zip(panels.values(), records["run"].B[0], strict=True)):
            heatmap(axes, B_DD, f"$B_{i}$: $b_{i}={np.trace(B_DD) / len(B_DD):.3f}$")
        next(iter(panels.values())).set_xlabel(off_s(from_identity(records["run"].B)), color=RED)

    def claims(self, records: Records) -> list[Claim]:
        run = records["run"]
        return [multiples_of_identity("B_l", "B", run.B, run.run["seeds"])]
