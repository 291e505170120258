"""ahn, Figure 7: test loss against the number of layers L, or of steps, at N = 20."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from icl.figures.ahn import losses
from icl.figures.ahn.losses import Losses
from icl.figures.claims import Claim, joint
from icl.figures.style import panels
from icl.runs.record import RunRecord


class Fig7:
    caption = (
        "Loss given the context, averaged exactly over task and query, of L trained layers (11) and of L steps of "
        "GD and of PGD (Sigma^-1) with step sizes searched on an independent draw, all on the same contexts of 20 "
        "examples. Left: median over contexts; right: mean over contexts, the paper's test loss. Lines are medians "
        "over seeds, bands their range; open circles are the means of single trained seeds, arrows means beyond "
        "the panel: trained losses are heavy-tailed from L = 3 on, so the claims use medians. At L = 1 B has no "
        "effect and the trained layer is one step of PGD (Theorem 1). Dashed: exact values. Grey: the authors' PGD "
        "baseline, which sees 19 of the 20 examples and takes one eta from a grid of nine; the paper also compares "
        "unpaired draws and keeps the best of the last twenty checkpoints, here it is the last one."
    )

    def draw(self, records: Mapping[str, RunRecord]) -> Figure:
        found = Losses.of(records, "layers")
        figure, axes = panels(1, 2, (3.1, 3.0))
        median, mean = axes[0]
        for name in found.loss_RC:
            losses.curve(median, found, name, np.median)
            if name != "trained":
                losses.curve(mean, found, name, np.mean)
        losses.exact_curves(mean, found, ("pgd_optimum", "ab_best", "pgd_published"))
        losses.seeds_apart(mean, found, "trained", ceiling=4)
        for axis, title in ((median, "median over contexts"), (mean, "mean over contexts")):
            axis.set_yscale("log")
            axis.set_xticks(found.values)
            axis.set_xlabel("layers, or steps, $L$")
            axis.set_title(title)
        mean.set_ylim(top=4)
        median.set_ylim(mean.get_ylim())
        median.set_ylabel("test loss given the context")
        handles, labels = mean.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4)
        return figure

    def claims(self, records: Mapping[str, RunRecord]) -> list[Claim]:
        found = Losses.of(records, "layers")
        deeper = [depth for depth in found.values if depth > 1]
        return [
            *([_one_layer(found)] if 1 in found.values else []),
            losses.medians_ordered(found, "trained", "pgd_steps", "L", deeper),
            losses.means_ordered(found, "pgd_steps", "gd_steps", "L", found.values),
            losses.means_ordered(found, "pgd_one", "gd_one", "L", found.values),
            *([losses.carried_by_one(found, "L", deeper)] if max(found.values) > 2 else []),
            losses.searched_is_best(found, "L"),
            losses.published_overstate(found, "L"),
        ]

    def table(self, records: Mapping[str, RunRecord]) -> list[dict[str, Any]]:
        return losses.table(Losses.of(records, "layers"), "L")


def _one_layer(found: Losses) -> Claim:
    """One step of PGD is the optimum at L = 1, so trained weights can only come close."""
    excess = [found.difference("trained", "pgd_steps", r) for r in found.at(1)]
    verdicts = [interval.below(0.02) for interval in excess]
    return Claim(
        claim="At L = 1 the trained layer is as good as one step of PGD, its optimum (Theorem 1)",
        measured=max(interval.middle for interval in excess),
        bound=f"mean loss on the same contexts less than 2 % above PGD's, {losses.LEVEL:.1%} paired interval",
        verdict=joint(verdicts),
    )
