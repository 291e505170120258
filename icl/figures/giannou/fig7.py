"""Figure 7 of giannou: logistic loss of encoders against Newton's steps, and their training error.

R seeds, L depths, T Newton steps or training steps.
"""

from __future__ import annotations

import numpy as np

from icl.figures.claims import Claim
from icl.figures.drawing import Drawing, Layout, Panels, Records
from icl.figures.giannou.losses import (
    LEVEL,
    LONGER,
    STEPS,
    TRAINED,
    Arrays,
    arrays_of,
    by_depth,
    claims_at_equal_layers,
    claims_at_equal_steps,
    gap_verdict,
    label_depth,
    undecided_if_short,
)
from icl.figures.items import Curve, Item, Level, metric
from icl.figures.style import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY, log_axis

MOST = 40  # layers, as far as the paper draws
DEPTHS = (BLUE, GREEN, PURPLE, ORANGE, SKY, RED, GREY)
FLOOR = 1e-12  # of a mean excess: below is rounding


class Fig7(Drawing):
    caption = (
        "(a) The regularised logistic loss (3.5) of encoders by depth, and of damped Newton from x = 0, its "
        "steps counted as 13 layers each (main text) and as 11 + 2k (appendix). Dashed: the minimum. (b) The "
        "same less the minimum, x the layers of an encoder or the steps of Newton, unscaled. (c) Training "
        "error: the mean squared distance of the output to the minimum's d coordinates, by training step; "
        "dashed: that of the output 0. Lines are means over seeds, bands their range."
    )

    layout = Layout("abc", (2.8, 2.4))

    def items(self, records: Records) -> list[Item]:
        losses = arrays_of(records)
        items = by_depth("a", losses, MOST)
        excess_TR, layers_L = losses["newton_excess_TR"], losses["layers_L"]
        shown = int((excess_TR.min(1) > FLOOR).sum())
        steps_T = np.arange(shown)
        items += [
            Curve("b", "trained encoder", BLUE, layers_L, losses["trained_excess_LR"].T, TRAINED),
            Curve("b", "damped Newton", RED, steps_T, excess_TR[:shown].T, STEPS),
        ]
        for i, layers in enumerate(layers_L.tolist()):
            steps, error_RS = metric(records[f"L={layers}"], "loss")
            label, color = f"{layers} layer" + ("" if layers == 1 else "s"), DEPTHS[i % len(DEPTHS)]
            items.append(Curve("c", label, color, steps, error_RS, {"linewidth": 0.9}))
        return [*items, Level("c", "output 0", float(losses["variance_R"].mean()))]

    def decorate(self, panels: Panels, records: Records) -> None:
        label_depth(panels["a"], MOST)
        panels["a"].set_title("(a) loss by layers")
        panels["b"].set(
            title="(b) loss above the minimum", xlabel="layers, or Newton steps", ylabel="excess loss"
        )
        panels["c"].set(
            title="(c) training error", xlabel="training step", ylabel="squared error per coordinate"
        )
        for name in "bc":
            log_axis(panels[name])
            panels[name].legend(loc="upper right")

    def claims(self, records: Records) -> list[Claim]:
        losses = arrays_of(records)
        return [*claims_at_equal_layers(losses), *claims_at_equal_steps(losses), *_two_err_less(losses)]


def _two_err_less(losses: Arrays) -> list[Claim]:
    """Trained alike, with the same prompts, and compared seed by seed."""
    error = dict(zip(losses["layers_L"].tolist(), losses["error_LR"], strict=True))
    if not {1, 2} <= set(error):
        return []
    measured, verdict = gap_verdict(np.log(error[2] / error[1]))
    return [
        Claim(
            "two layers trained as long as one end nearer to the solution",
            {"error by layers": {str(layers): float(error_R.mean()) for layers, error_R in error.items()}}
            | {"log ratio, two to one": measured},
            f"log ratio of squared errors on fresh prompts below 0: {LEVEL:.0%} Student interval over seeds",
            undecided_if_short(verdict, losses),
            remarks=[LONGER],
            whose="project",
            kind="sampled",
        )
    ]
