"""Figure 10 of giannou: the derivative of h, and h at x = 1/6, over the errors of an inexact Newton step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes

from icl.figures.claims import Claim, exact, searched
from icl.figures.drawing import Drawing, Layout, Panels, Records
from icl.figures.items import Item, Rows
from icl.figures.style import colour_bar

PRINTED_SLOPE = -0.02  # "approximately", in appendix E.1
DECREASE = -0.01


@dataclass(frozen=True, eq=False)
class Surface(Item):
    """A function of two variables: colours, and level lines with their numbers."""

    x_X: np.ndarray
    y_Y: np.ndarray
    value_XY: np.ndarray

    def draw(self, axes: Axes) -> None:
        grid = self.x_X, self.y_Y, np.ma.masked_invalid(self.value_XY.T)
        image = axes.pcolormesh(*grid, cmap="viridis", shading="gouraud", rasterized=True)
        lines = axes.contour(*grid, levels=6, colors="black", linewidths=0.5, linestyles="solid")
        axes.clabel(lines, fontsize=5.5)
        colour_bar(image, axes, 0.85)

    def rows(self) -> Rows:
        return [
            {"panel": self.panel, "x": float(self.x_X[i]), "y": float(self.y_Y[j]), "value": float(value)}
            for (i, j), value in np.ndenumerate(self.value_XY)
        ]


class Fig10(Drawing):
    caption = (
        "(a) dh/dx over the decrement x and c = eps^T grad g, for eps^T Hess g eps = 0: negative everywhere. "
        "(b) h(1/6), which bounds the change of g in a step, over y = eps^T grad g and z = eps^T Hess g eps. "
        "White line: h = -.01; above it the decrease is less than the paper states. Dotted: the largest z "
        "that the paper's own eps <= min(.01, .04 mu/(1 + mu)) allows. White corners: no error is such."
    )

    layout = Layout("ab", (3.1, 2.5))

    def items(self, records: Records) -> list[Surface]:
        arrays = records["surfaces"].weights
        return [
            Surface("a", "dh/dx", arrays["x_X"], arrays["c_C"], arrays["slope_XC"]),
            Surface("b", "h(1/6)", arrays["y_Y"], arrays["z_Z"], arrays["h_YZ"]),
        ]

    def decorate(self, panels: Panels, records: Records) -> None:
        arrays = records["surfaces"].weights
        panels["a"].set(title="(a) $dh/dx$", xlabel="$x$", ylabel="$c$")
        grid = arrays["y_Y"], arrays["z_Z"], arrays["h_YZ"].T
        panels["b"].contour(*grid, levels=[DECREASE], colors="white", linestyles="solid")
        panels["b"].axhline(float(arrays["own_z"]), color="white", linestyle=":", linewidth=1.2)
        panels["b"].set(title="(b) $h(1/6)$", xlabel="$y$", ylabel="$z$")

    def claims(self, records: Records) -> list[Claim]:
        numbers = {name: float(records["surfaces"].weights[name]) for name in _NUMBERS}
        return [_decreasing(numbers), _largest_slope(numbers), _constant_decrease(numbers), _own_eps(numbers)]


_NUMBERS = (
    "largest_slope", "certificate", "largest_h", "largest_h_error", "own_z", "largest_h_own",
    "largest_h_own_error",
)  # fmt: skip


def _decreasing(numbers: Mapping[str, float]) -> Claim:
    return Claim.of(
        "h decreases in x on [1/6, 1] for |c| <= .06",
        {"-certificate": -numbers["certificate"], "largest dh/dx on the grid": numbers["largest_slope"]},
        exact(-numbers["certificate"]).below(
            0.0, "minus a lower bound of G, which has the sign of -dh/dx, by interval arithmetic: below 0"
        ),
        trained=False,
        remarks=["For eps^T Hess g eps = 0, as plotted; with .012 in its place h has a pole at larger x."],
    )


def _largest_slope(numbers: Mapping[str, float]) -> Claim:
    gap = abs(numbers["largest_slope"] / PRINTED_SLOPE - 1)
    return Claim.of(
        "the largest value of dh/dx is approximately -.02",
        {"largest dh/dx on the grid": numbers["largest_slope"], "off, relative": gap},
        searched(gap).below(0.5, "within half of -.02"),
        expected="fails",
        trained=False,
        remarks=["It is further below 0 than stated, so that nothing that rests on it is lost."],
    )


def _constant_decrease(numbers: Mapping[str, float]) -> Claim:
    return Claim.of(
        "h(1/6) <= -.01 for |y| <= .01 and z <= .012",
        {"largest h(1/6)": numbers["largest_h"], "between grid points": numbers["largest_h_error"]},
        searched(numbers["largest_h"] + numbers["largest_h_error"] / 2, numbers["largest_h_error"] / 2).below(
            DECREASE, "at most -.01; a value on the grid is attained"
        ),
        expected="fails",
        trained=False,
        remarks=[
            "The figure plots h as it is defined; check=giannou/appendixE_1 tests the printed formulas."
        ],
    )


def _own_eps(numbers: Mapping[str, float]) -> Claim:
    return Claim.of(
        "h(1/6) <= -.01 for |y| <= .01 and the z that eps <= min(.01, .04 mu/(1 + mu)) allows",
        {"z": numbers["own_z"], "largest h(1/6)": numbers["largest_h_own"]},
        searched(numbers["largest_h_own"] + numbers["largest_h_own_error"]).below(
            DECREASE, "at most -.01, with what the grid can miss"
        ),
        trained=False,
        whose="project",
    )
