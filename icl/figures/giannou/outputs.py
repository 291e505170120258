"""Parts that Figures 3 and 4 of giannou share: answers while one coordinate of the query moves.

R seeds, K groups of contexts, G values of the coordinate, T steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from icl.figures.claims import Decision, sampled
from icl.figures.drawing import Drawing, Layout, Panels, Records
from icl.figures.giannou.regression import ORDERS, Value
from icl.figures.items import Curve, Item, Line
from icl.figures.style import BLUE, EXACT, GREY, PURPLE, is_leftmost, shared_legend

Arrays = Mapping[str, np.ndarray]

MASKS = {"unmasked": "LSA, no mask", "masked": "LSA, query masked"}
ROWS = {"outputs": MASKS, "layernorm_outputs": {"layernorm": "LSA + LayerNorm"}}
CLIPPED: Mapping[str, Any] = {"linestyle": ":", "linewidth": 1.0}
EDGE = 1.3  # of the line's range, that a panel shows
LOST = 0.5  # of the line's size: more is called a departure


def arrays_of(records: Records, of: str = "outputs") -> Arrays:
    return records[of].weights


def range_mask(arrays: Arrays, far: bool) -> np.ndarray:
    """Mask of the coordinate's values in the figure's range: the inner points come first."""
    inner = np.zeros(len(arrays["x_G"]), dtype=bool)
    inner[: len(inner) - _outer(arrays)] = True
    return ~inner if far else inner


def _outer(arrays: Arrays) -> int:
    """Points of the outer range: from the last of the inner ones, the coordinate jumps back."""
    jump = int(np.flatnonzero(np.diff(arrays["x_G"]) < 0)[0])
    return len(arrays["x_G"]) - jump - 1


class Outputs(Drawing):
    """A panel for each depth, in a row for each model: outputs while one coordinate of the query moves."""

    far = False  # out of distribution
    source = "outputs"

    @property
    def models(self) -> Mapping[str, str]:
        return ROWS[self.source]

    def layout_of(self, records: Records) -> Layout:
        depths = arrays_of(records, self.source)["depths_L"].tolist()
        rows = [*self.models, *(f"order {order}" for order in ORDERS)]
        return Layout(
            [_panel(row, depth) for row in rows for depth in depths], (1.7, 1.35), len(depths), is_table=True
        )

    def items(self, records: Records) -> list[Item]:
        arrays = arrays_of(records, self.source)
        here = range_mask(arrays, self.far)
        items: list[Item] = []
        x_G, line_G = arrays["x_G"][here], arrays["line_G"][here]
        for depth in arrays["depths_L"].tolist():
            for mask in self.models:
                name, panel = run_name(mask, depth), _panel(mask, depth)
                items.append(Line(panel, "$\\langle w, x\\rangle$", x_G, line_G, EXACT))
                y_RG = arrays[f"{name}_RKG"].mean(1)[:, here]
                items.append(Curve(panel, "LSA, seeds", BLUE, x_G, y_RG))
                if f"{name}_clipped_RG" not in arrays:
                    continue
                y_RG = arrays[f"{name}_clipped_RG"][:, here]
                items.append(Curve(panel, "clipped to $\\pm 10$", PURPLE, x_G, y_RG, CLIPPED))
            for order, color in ORDERS.items():
                panel = _panel(f"order {order}", depth)
                items.append(Line(panel, "$\\langle w, x\\rangle$", x_G, line_G, EXACT))
                for start, line in (("transpose", "-"), ("identity", ":")):
                    label = f"Newton, order {order}" + ("" if start == "transpose" else ", better start")
                    mean_G = arrays[f"newton_{start}_{order}_TKG"][depth].mean(0)[here]
                    style = {"color": color, "linestyle": line, "linewidth": 1.2}
                    items.append(Line(panel, label, x_G, mean_G, style))
        return items

    def decorate(self, panels: Panels, records: Records) -> None:
        arrays = arrays_of(records, self.source)
        here, depths = range_mask(arrays, self.far), arrays["depths_L"].tolist()
        x_G, line_G = arrays["x_G"][here], arrays["line_G"][here]
        middle, reach = (line_G.max() + line_G.min()) / 2, EDGE * np.ptp(line_G) / 2
        for axes in panels.values():
            axes.set(xlim=(x_G.min(), x_G.max()), ylim=(middle - reach, middle + reach))
            for side in (-1, 1):
                axes.axvline(side * float(arrays["range"]), color=GREY, linewidth=0.7, linestyle="--")
        labels = [*self.models.values(), *(f"Newton, order {order}" for order in ORDERS)]
        for number, axes in enumerate(panels.values()):
            row, column = divmod(number, len(depths))
            if row == 0:
                axes.set_title(f"$\\ell = {depths[column]}$")
            if is_leftmost(axes):
                axes.set_ylabel(labels[row])
            if row == len(labels) - 1:
                axes.set_xlabel("$x_1$ of the query")
        top = panels[_panel(next(iter(self.models)), depths[-1])]
        shared_legend(panels.values(), top, loc="upper left", bbox_to_anchor=(1.0, 1.1))


def in_distribution(arrays: Arrays) -> np.ndarray:
    """Return the values of the inner range that are in distribution."""
    return range_mask(arrays, far=False) & (np.abs(arrays["x_G"]) <= float(arrays["range"]))


def departure(arrays: Arrays, y_RG: np.ndarray) -> np.ndarray:
    """Distance from the line at both edges of the outer range over its size there, by seed."""
    ends = np.flatnonzero(range_mask(arrays, far=True))[[0, -1]]
    line_2 = arrays["line_G"][ends]
    return np.sqrt(((y_RG[:, ends] - line_2) ** 2).sum(1) / (line_2**2).sum())


def lost_beyond(arrays: Arrays, models: Sequence[str]) -> tuple[dict[str, float], Decision]:
    """Decide that models leave the line out of distribution: one that does not follow it in distribution,
    either, is no evidence. Return the distances at the edges by depth, the least of all seeds."""
    here = in_distribution(arrays)
    edges: dict[str, float] = {}
    near = []
    for model in models:
        mean_RKG = arrays[f"{model}_RKG"]
        edges[f"{model.rpartition('L')[2]} layers"] = float(departure(arrays, mean_RKG.mean(1)).min())
        near += [miss(arrays, mean_KG, here).mean for mean_KG in mean_RKG]
    if not models:
        return edges, Decision("undecided", "sampled")
    decided = sampled(list(edges.values())).above(
        LOST,
        f"distance from <w, x> at the edges above {LOST:.0%} of its size, every seed (least shown); in "
        "distribution below it, or the verdict is undecided",
    )
    return edges, with_control(decided, max(near))


def with_control(decided: Decision, distance: float) -> Decision:
    """Return what is decided of a departure from the line. `distance` is the control's, which lacks what is
    said to cause it: where that leaves the line, too, the verdict is undecided."""
    return decided if distance < LOST else replace(decided, verdict="undecided")


def run_name(mask: str, depth: int) -> str:
    return f"kappa1_{mask}_L{depth}"


def miss(arrays: Arrays, mean_KG: np.ndarray, here: np.ndarray) -> Value:
    """Root mean square of the mean output's distance from the line, over the line's own; its error by the
    jackknife over groups of contexts."""
    line_G = arrays["line_G"][here]
    scale = float(np.sqrt(np.mean(line_G**2)))

    def of(mean_G: np.ndarray) -> float:
        return float(np.sqrt(np.mean((mean_G[here] - line_G) ** 2))) / scale

    K = len(mean_KG)
    left = np.array([of((mean_KG.sum(0) - mean_KG[k]) / (K - 1)) for k in range(K)])
    return Value(of(mean_KG.mean(0)), float(np.sqrt((K - 1) / K * np.square(left - left.mean()).sum())))


def _panel(row: str, depth: int) -> str:
    return f"{row}, {depth}"
