"""Figure 7 of giannou: logistic loss of encoders against Newton's steps, and their training error.

R seeds, L depths, T Newton steps or training steps.
"""

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import to_hex

from icl.figures.claims import Claim
from icl.figures.figure import Layout, Panels, Records
from icl.figures.giannou.logistic import LEVEL, Arrays, LogisticFigure, gap_verdict
from icl.figures.style import BLUE, GREEN, GREY, band, log_axis, shared_legend, step_axis
from icl.verdicts import joint

DARK_TO_LIGHT = (0.0, 0.9)  # of the colour map, by depth
FLOOR = 1e-12  # of a mean excess: below is rounding


class Fig7(LogisticFigure):
    layout = Layout("abc", (2.8, 2.4))

    def draw(self, panels: Panels, records: Records) -> None:
        losses, (a, b, c) = records["losses"].weights, panels.values()
        self.draw_loss(a, losses)
        excess_TR = losses["newton_TR"] - losses["least_R"]
        shown = int((excess_TR.min(1) > FLOOR).sum())
        band(
            b, self.layers, (losses["trained_LR"] - losses["least_R"]).T, BLUE, "trained encoder", marker="o"
        )
        band(b, np.arange(shown), excess_TR[:shown].T, GREEN, "damped Newton, steps unscaled", marker="D")
        colours = colormaps["viridis"](np.linspace(*DARK_TO_LIGHT, len(self.layers)))
        for layers, colour in zip(self.layers, colours, strict=True):
            label = f"{layers} layer" + ("" if layers == 1 else "s")
            steps_T, loss_RT = records[f"L={layers}"].curve("loss")
            band(c, steps_T, loss_RT, to_hex(colour), label)
        step_axis(c, steps_T[-1], "training step")
        c.axhline(losses["variance_R"].mean(), label="output 0", color=GREY)
        a.set_title("(a) loss by layers")
        b.set(title="(b) loss above the minimum", xlabel="layers, or Newton steps", ylabel="excess loss")
        c.set(title="(c) training error", ylabel="squared error / $d$")
        for axes in (b, c):
            log_axis(axes)
        shared_legend(panels.values())

    def claims(self, records: Records) -> list[Claim]:
        losses = records["losses"].weights
        return [*self.claim_at_equal_layers(losses), *self._claim_at_equal_steps(losses)]

    def _claim_at_equal_steps(self, losses: Arrays) -> list[Claim]:
        """Compare one layer with one step, two with two: nothing is scaled. More steps than these are as good
        as the minimum."""
        found = {}
        for depth, name in {1: "one layer", 2: "two layers"}.items():
            if depth in self.layers:
                trained_R = losses["trained_LR"][self.layers.index(depth)]
                found[name] = gap_verdict(trained_R - losses["newton_TR"][depth])
        if not found:
            return []
        return [
            Claim(
                "trained encoders of one layer and of two have a lower loss than as many damped Newton steps "
                "from x = 0",
                {name: interval for name, (interval, _) in found.items()},
                f"loss minus Newton's below 0: {LEVEL:.0%} Student interval over seeds",
                self.undecided_if_short(joint([verdict for _, verdict in found.values()])),
                remarks=["Undecided where training was short: icl figure giannou/fig7 scale=paper decides."],
                whose="project",
                kind="sampled",
            )
        ]
