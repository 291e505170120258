"""Figure 7 of giannou: logistic loss of encoders against Newton's steps, and their training error.

R seeds, L depths, T Newton steps or training steps.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from icl.figures.claims import Claim
from icl.figures.curves import Curve, Level, Rows, draw_panels, metric, table
from icl.figures.giannou.losses import (
    LEVEL,
    LONGER,
    STEPS,
    TRAINED,
    Arrays,
    against_as_many,
    arrays_of,
    by_depth,
    label_depth,
    of_gap,
    scaled,
    settled,
)
from icl.figures.style import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY, log_axis, panels
from icl.runs.record import RunRecord

Records = Mapping[str, RunRecord]
MOST = 40  # layers, as far as the paper draws
DEPTHS = (BLUE, GREEN, PURPLE, ORANGE, SKY, RED, GREY)
FLOOR = 1e-12  # of a mean excess: below is rounding


class Fig7:
    caption = (
        "(a) The regularised logistic loss (3.5) of encoders by depth, and of damped Newton from x = 0, his "
        "steps counted as 13 layers each (main text) and as 11 + 2k (appendix). Dashed: the minimum. (b) The "
        "same less the minimum, x the layers of an encoder or the steps of Newton, unscaled. (c) Training "
        "error: the mean squared distance of the output to the minimum's d coordinates, by training step; "
        "dashed: that of the output 0. Lines are means over seeds, bands their range."
    )

    def draw(self, records: Records) -> Figure:
        figure, axes = panels(1, 3, (2.8, 2.4))
        by_panel = dict(zip("abc", axes[0], strict=True))
        draw_panels(by_panel, _drawn(records))
        label_depth(by_panel["a"], arrays_of(records), MOST)
        by_panel["a"].set_title("(a) loss by layers")
        by_panel["b"].set(
            title="(b) loss above the minimum", xlabel="layers, or Newton steps", ylabel="excess loss"
        )
        by_panel["c"].set(
            title="(c) training error", xlabel="training step", ylabel="squared error per coordinate"
        )
        for name in "bc":
            log_axis(by_panel[name])
            by_panel[name].legend(loc="upper right")
        return figure

    def table(self, records: Records) -> Rows:
        return table(_drawn(records))

    def claims(self, records: Records) -> list[Claim]:
        losses = arrays_of(records)
        return [*scaled(losses), *against_as_many(losses), *_two_err_less(losses)]


def _drawn(records: Records) -> list[Curve | Level]:
    losses = arrays_of(records)
    drawn = by_depth("a", losses, MOST)
    excess_TR, layers_L = losses["newton_excess_TR"], losses["layers_L"]
    shown = int((excess_TR.min(1) > FLOOR).sum())
    steps_T = np.arange(shown)
    drawn += [
        Curve("b", "trained encoder", BLUE, layers_L, losses["trained_excess_LR"].T, TRAINED),
        Curve("b", "damped Newton", RED, steps_T, excess_TR[:shown].T, STEPS),
    ]
    for color, layers in zip(_colors(len(layers_L)), layers_L.tolist(), strict=True):
        steps, error_RS = metric(records[f"L={layers}"], "loss")
        label = f"{layers} layer" + ("" if layers == 1 else "s")
        drawn.append(Curve("c", label, color, steps, error_RS, {"linewidth": 0.9}))
    return [*drawn, Level("c", "output 0", float(losses["variance_R"].mean()))]


def _colors(count: int) -> list[str]:
    return [DEPTHS[i % len(DEPTHS)] for i in range(count)]


def _two_err_less(losses: Arrays) -> list[Claim]:
    """Trained alike, with the same prompts, and compared seed by seed."""
    error = dict(zip(losses["layers_L"].tolist(), losses["error_LR"], strict=True))
    if not {1, 2} <= set(error):
        return []
    measured, verdict = of_gap(np.log(error[2] / error[1]))
    return [
        Claim(
            "two layers trained as long as one end nearer to the solution",
            {"error by layers": {str(layers): float(error_R.mean()) for layers, error_R in error.items()}}
            | {"log ratio, two to one": measured},
            f"log ratio of squared errors on fresh prompts below 0: {LEVEL:.0%} Student interval over seeds",
            settled(verdict, losses),
            remarks=[LONGER],
            whose="project",
            kind="sampled",
        )
    ]
