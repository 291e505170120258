"""Figure 2 of looped: the gain of the best shared matrix, by context length, loops and dimension."""

from __future__ import annotations

import numpy as np

from icl import quantiles
from icl.figures.claims import Claim, exact, sampled
from icl.figures.drawing import Drawing, Layout, Panels, Records
from icl.figures.heatmaps import outline
from icl.figures.items import Heatmap, Item

ALPHA = 0.001  # of the intervals that are stored, one for each cell


class Fig2(Drawing):
    caption = (
        "Share of the risk of the best multiple of Sigma^-1 that the best matrix found saves, by context "
        "length n "
        "and number of loops L. d = 2: exact. Larger d: measured on prompts that the search has not seen; 0 "
        "where "
        "the search came back to a multiple. Outlined: cells in which the best multiple is a saddle, "
        "exactly. "
        "What a search finds is at least what there is to gain."
    )

    def layout_of(self, records: Records) -> Layout:
        return Layout([f"d = {d}" for d in records["gains"].weights["dims_C"]], (2.5, 2.7))

    def items(self, records: Records) -> list[Item]:
        arrays = records["gains"].weights
        return [
            Heatmap(f"d = {d}", f"d = {d}", gain_NL[None], [0])
            for d, gain_NL in zip(arrays["dims_C"], arrays["gain_CNL"], strict=True)
        ]

    def decorate(self, panels: Panels, records: Records) -> None:
        arrays = records["gains"].weights
        for axes, sign_NL in zip(panels.values(), arrays["sign_CNL"], strict=True):
            axes.set_xticks(range(len(arrays["loops_L"])), arrays["loops_L"])
            axes.set_yticks(range(len(arrays["contexts_N"])), arrays["contexts_N"])
            axes.set_xlabel("loops L")
            outline(axes, np.argwhere(sign_NL < 0))
        next(iter(panels.values())).set_ylabel("context length n")

    def claims(self, records: Records) -> list[Claim]:
        arrays = records["gains"].weights
        gain, half, other, other_half = (
            arrays[f"{name}_CNL"] for name in ("gain", "half_width", "other", "other_half_width")
        )
        saddle = (arrays["sign_CNL"] < 0) & (arrays["loops_L"] > 1)
        off = np.abs(gain - other)
        sampled_cells = max(int((half > 0).sum()), 1)
        joint = quantiles.normal(ALPHA / (2 * sampled_cells)) / quantiles.normal(ALPHA / 2)
        allowed = joint * np.hypot(half, other_half) + 1e-6
        plane = arrays["dims_C"] == 2
        outside = gain[(arrays["sign_CNL"] > 0) & (gain > half)]
        return [
            Claim.of(
                "where the best multiple is a saddle, a matrix with an antisymmetric part has a lower risk: "
                "d = 2",
                {
                    "cells": int(saddle[plane].sum()),
                    "least gain": float(gain[plane][saddle[plane]].min(initial=1)),
                },
                exact(gain[plane][saddle[plane]]).above(0.0, "gain above 0 in every such cell"),
                trained=False,
                whose="project",
            ),
            *self._wider(gain, half, plane),
            Claim.of(
                "every cell agrees with a value found in another way: rationals at d = 2, other draws beyond",
                {"largest difference": float(off.max()), "cells": int(off.size)},
                sampled(off - allowed).at_most(
                    0.0, "99.9 % for all cells together, and 10^-6 for the rounded weights"
                ),
                trained=False,
                whose="project",
            ),
            Claim.of(
                "a rotation far from the multiples of Sigma^-1 may gain where the best of these is a local "
                "minimum",
                {"cells": len(outside), "largest gain there": float(outside.max(initial=0))},
                exact(float(len(outside))).above(0.0, "at least one such cell"),
                trained=False,
                whose="project",
            ),
        ]

    def _wider(self, gain: np.ndarray, half: np.ndarray, plane: np.ndarray) -> list[Claim]:
        """Small gains are below what draws can tell, so one cell of each dimension decides."""
        if plane.all():
            return []
        found, width = gain[~plane][:, -1, -1], half[~plane][:, -1, -1]
        return [
            Claim.of(
                "in more dimensions, too, one matrix gains at the longest context and the most loops",
                {"gains": found.tolist(), "half widths": width.tolist()},
                sampled(found, width).above(0.0, "99.9 % intervals above 0 in every dimension"),
                trained=False,
                whose="project",
            )
        ]
