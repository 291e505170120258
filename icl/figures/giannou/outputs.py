"""What Figures 3 and 4 of giannou share: answers while one coordinate of the query moves.

R seeds, K groups of contexts, G values of the coordinate, T steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from icl.figures.curves import Curve, Line, Rows, draw_panels, table
from icl.figures.giannou.regression import ORDERS, Value
from icl.figures.style import BLUE, EXACT, GREY, PURPLE, panels
from icl.runs.record import RunRecord

Records = Mapping[str, RunRecord]
Arrays = Mapping[str, np.ndarray]

MASKS = {"unmasked": "LSA, no mask", "masked": "LSA, query masked"}
ROWS = {"outputs": MASKS, "layernorm_outputs": {"layernorm": "LSA + LayerNorm"}}
CLIPPED: Mapping[str, Any] = {"linestyle": ":", "linewidth": 1.0}
EDGE = 1.3  # of the line's range, that a panel shows


def arrays_of(records: Records, of: str = "outputs") -> Arrays:
    return records[of].weights


def shown(found: Arrays, far: bool) -> np.ndarray:
    """Which values of the coordinate belong to the figure: the inner points come first."""
    inner = np.zeros(len(found["x_G"]), dtype=bool)
    inner[: len(inner) - _outer(found)] = True
    return ~inner if far else inner


def _outer(found: Arrays) -> int:
    """Points of the outer range: from the last of the inner ones, the coordinate jumps back."""
    jump = int(np.flatnonzero(np.diff(found["x_G"]) < 0)[0])
    return len(found["x_G"]) - jump - 1


def drawing(records: Records, far: bool, of: str = "outputs") -> Figure:
    found, models = arrays_of(records, of), ROWS[of]
    depths, x_G = found["depths_L"].tolist(), found["x_G"][shown(found, far)]
    figure, axes = panels(len(models) + len(ORDERS), len(depths), (1.7, 1.35))
    by_panel = {
        _panel(row, depth): axes[i, j]
        for i, row in enumerate([*models, *(f"order {order}" for order in ORDERS)])
        for j, depth in enumerate(depths)
    }
    draw_panels(by_panel, drawn(records, far, of))
    line_G = found["line_G"][shown(found, far)]
    middle, reach = (line_G.max() + line_G.min()) / 2, EDGE * np.ptp(line_G) / 2
    for place in by_panel.values():
        place.set(xlim=(x_G.min(), x_G.max()), ylim=(middle - reach, middle + reach))
        for side in (-1, 1):
            place.axvline(side * float(found["range"]), color=GREY, linewidth=0.7, linestyle="--")
    _words(axes, depths, list(models.values()))
    entries = [place.get_legend_handles_labels() for place in axes.ravel()]
    both = {text: handle for pair in entries for handle, text in zip(*pair, strict=True)}
    axes[0, -1].legend(both.values(), both.keys(), loc="upper left", bbox_to_anchor=(1.0, 1.1))
    return figure


def _words(axes: Any, depths: list[int], models: list[str]) -> None:
    for place, depth in zip(axes[0], depths, strict=True):
        place.set_title(f"$\\ell = {depth}$")
    for row, said in zip(axes, [*models, *(f"Newton, order {order}" for order in ORDERS)], strict=True):
        first: Axes = row[0]
        first.set_ylabel(said)
    for place in axes[-1]:
        place.set_xlabel("$x_1$ of the query")


def drawn(records: Records, far: bool, of: str = "outputs") -> list[Any]:
    found = arrays_of(records, of)
    here = shown(found, far)
    items: list[Any] = []
    x_G, line_G = found["x_G"][here], found["line_G"][here]
    for depth in found["depths_L"].tolist():
        for mask in ROWS[of]:
            name, panel = run_name(mask, depth), _panel(mask, depth)
            items.append(Line(panel, "$\\langle w, x\\rangle$", x_G, line_G, EXACT))
            y_RG = found[f"{name}_RKG"].mean(1)[:, here]
            items.append(Curve(panel, "LSA, seeds", BLUE, x_G, y_RG))
            if f"{name}_clipped_RG" not in found:
                continue
            y_RG = found[f"{name}_clipped_RG"][:, here]
            items.append(Curve(panel, "clipped to $\\pm 10$", PURPLE, x_G, y_RG, CLIPPED))
        for order, color in ORDERS.items():
            panel = _panel(f"order {order}", depth)
            items.append(Line(panel, "$\\langle w, x\\rangle$", x_G, line_G, EXACT))
            for start, style in (("transpose", "-"), ("identity", ":")):
                label = f"Newton, order {order}" + ("" if start == "transpose" else ", better start")
                mean_G = found[f"newton_{start}_{order}_TKG"][depth].mean(0)[here]
                items.append(
                    Line(panel, label, x_G, mean_G, {"color": color, "linestyle": style, "linewidth": 1.2})
                )
    return items


def rows(records: Records, far: bool, of: str = "outputs") -> Rows:
    return table(drawn(records, far, of))


def within(found: Arrays) -> np.ndarray:
    """The values of the inner range that are in distribution."""
    return shown(found, far=False) & (np.abs(found["x_G"]) <= float(found["range"]))


def lost(found: Arrays, y_RG: np.ndarray) -> float:
    """Distance from the line at both edges of the outer range over its size there, the least of all seeds."""
    ends = np.flatnonzero(shown(found, far=True))[[0, -1]]
    line_2 = found["line_G"][ends]
    return float(np.sqrt(((y_RG[:, ends] - line_2) ** 2).sum(1) / (line_2**2).sum()).min())


def run_name(mask: str, depth: int) -> str:
    return f"kappa1_{mask}_L{depth}"


def miss(found: Arrays, mean_KG: np.ndarray, here: np.ndarray) -> Value:
    """Root mean square of the mean output's distance from the line, over the line's own; its error by the
    jackknife over groups of contexts."""
    line_G = found["line_G"][here]
    scale = float(np.sqrt(np.mean(line_G**2)))

    def of(mean_G: np.ndarray) -> float:
        return float(np.sqrt(np.mean((mean_G[here] - line_G) ** 2))) / scale

    K = len(mean_KG)
    left = np.array([of((mean_KG.sum(0) - mean_KG[k]) / (K - 1)) for k in range(K)])
    return Value(of(mean_KG.mean(0)), float(np.sqrt((K - 1) / K * np.square(left - left.mean()).sum())))


def _panel(row: str, depth: int) -> str:
    return f"{row}, {depth}"
