"""Figure 10 of giannou: the two surfaces of appendix E.1, and what is certain of them.

h bounds the decrease of one inexact damped Newton step: x Newton's decrement, c = y = eps^T grad g,
z = eps^T Hess g eps (icl.theory.giannou.decrease).
"""

from collections.abc import Callable

import numpy as np
from flint import arb, ctx, fmpq
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from icl.errors import whole
from icl.figures.claims import Claim, exact
from icl.figures.figure import Figure, Layout, Panels, Records
from icl.figures.runner import Runner
from icl.figures.style import colour_bar
from icl.figures.training import KEY
from icl.theory.giannou.decrease import error_allowed, h, largest_over, slope, squared_delta
from icl.theory.rationals import rational

SIXTH = fmpq(1, 6)
X, C = (1 / 6, 1.0), 0.06  # ranges of x and |c| in the left plot
Y, Z = 0.012, 0.012  # of |y| and z in the right one
STATED_Y, STATED_Z = fmpq(1, 100), fmpq(12, 1000)  # in the claim
PRINTED_SLOPE = -0.02  # "approximately"
DECREASE = -0.01


class Fig10(Figure):
    """`cells`: of the drawn grid along each axis."""

    layout = Layout("ab", (3.1, 2.5))

    def __init__(self, cells: int) -> None:
        self.cells = whole(f"{KEY}.cells", cells, 10, 1000)

    def runs(self, runner: Runner) -> Records:
        science = {"cells": self.cells, "seeds": []}
        with ctx.workprec(80):  # floats are then the nearest
            return {"surfaces": runner.store("giannou/fig10_surfaces", science, self._surfaces)}

    def _surfaces(self) -> dict[str, np.ndarray]:
        x_X, c_C = np.linspace(*X, self.cells + 1), np.linspace(-C, C, self.cells + 1)
        y_Y, z_Z = np.linspace(-Y, Y, self.cells + 1), np.linspace(0, Z, self.cells + 1)
        own_z = error_allowed(fmpq(1, 3))
        numbers = {
            "largest_slope": slope(SIXTH, fmpq(0), fmpq(1, 7)),
            "largest_h": largest_over(SIXTH, STATED_Y, STATED_Z),
            "own_z": own_z,
            "largest_h_own": largest_over(SIXTH, STATED_Y, own_z),
        }
        return {
            "x_X": x_X,
            "c_C": c_C,
            "slope_XC": _surface(lambda x, c: slope(x, c, arb(squared_delta(x, c, 0)).sqrt()), x_X, c_C),
            "y_Y": y_Y,
            "z_Z": z_Z,
            "h_YZ": _surface(lambda y, z: h(SIXTH, y, z), y_Y, z_Z),
            **{name: np.array(float(arb(value))) for name, value in numbers.items()},
        }

    def draw(self, panels: Panels, records: Records) -> None:
        found = records["surfaces"].weights
        _draw_surface(panels["a"], found["x_X"], found["c_C"], found["slope_XC"])
        panels["a"].set(title="(a) $dh/dx$", xlabel="$x$", ylabel="$c$")
        right, right_grid = panels["b"], (found["y_Y"], found["z_Z"], found["h_YZ"])
        _draw_surface(right, *right_grid)
        y_Y, z_Z, h_YZ = right_grid
        stated = right.contour(y_Y, z_Z, h_YZ.T, levels=[DECREASE], colors="white", linestyles="solid")
        right.clabel(stated, fontsize="small")
        right.axhline(float(found["own_z"]), color="white", linestyle=":")
        right.set(title="(b) $h(1/6)$", xlabel="$y$", ylabel="$z$")

    def claims(self, records: Records) -> list[Claim]:
        found = records["surfaces"].weights
        names = ("largest_slope", "largest_h", "largest_h_own", "own_z")
        largest_slope, largest_h, largest_h_own, own_z = (float(found[name]) for name in names)
        off = abs(largest_slope / PRINTED_SLOPE - 1)
        return [
            Claim.of(
                "h decreases in x on [1/6, 1] for |c| <= .06",
                {"largest dh/dx": largest_slope},
                exact(largest_slope).below(0.0, "below 0"),
                trained=False,
                remarks=[
                    "For eps^T Hess g eps = 0, as plotted; with .012 in its place h has a pole at larger x."
                ],
            ),
            Claim.of(
                "the largest value of dh/dx is approximately -.02",
                {"largest dh/dx": largest_slope, "off, relative": off},
                exact(off).below(0.5, "within half of -.02"),
                expected="fails",
                trained=False,
                remarks=["It is further below 0 than stated, so that nothing that rests on it is lost."],
            ),
            Claim.of(
                "h(1/6) <= -.01 for |y| <= .01 and z <= .012",
                {"largest h(1/6)": largest_h},
                exact(largest_h).below(DECREASE, "at most -.01"),
                expected="fails",
                trained=False,
                remarks=["The figure plots h as it is defined; check=giannou/appendixE_1 has the misprints."],
            ),
            Claim.of(
                "h(1/6) <= -.01 for |y| <= .01 and the z that eps <= min(.01, .04 mu/(1 + mu)) allows",
                {"z": own_z, "largest h(1/6)": largest_h_own},
                exact(largest_h_own).below(DECREASE, "at most -.01"),
                trained=False,
                whose="project",
            ),
        ]


def _surface(f: Callable[[fmpq, fmpq], arb], x_X: np.ndarray, y_Y: np.ndarray) -> np.ndarray:
    """Return f on the grid, nan where it is not defined."""
    return np.array([[float(f(rational(x), rational(y))) for y in y_Y] for x in x_X])


def _draw_surface(axes: Axes, x_X: np.ndarray, y_Y: np.ndarray, value_XY: np.ndarray) -> None:
    """Draw colours, and level lines with their numbers."""
    grid = x_X, y_Y, np.ma.masked_invalid(value_XY.T)
    axes.xaxis.set_major_locator(MaxNLocator(4))
    image = axes.pcolormesh(*grid, cmap="viridis", shading="gouraud", rasterized=True)
    lines = axes.contour(*grid, levels=6, colors="black", linestyles="solid")
    axes.clabel(lines, fontsize="small")
    colour_bar(image, axes, 0.85)
