"""Figure 10 of giannou: the two surfaces of appendix E.1, and what is certain of them.

h is the bound on the decrease of one inexact damped Newton step: x Newton's decrement, c = y = eps^T grad g,
z = eps^T Hess g eps (icl.checks.giannou.support.newton_decrease).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from icl.checks.giannou.support.newton_decrease import (
    h,
    largest_at_sixth,
    largest_derivative,
    least_of_G,
    own_bound_on_z,
    slope,
)
from icl.errors import whole
from icl.experiments.runner import Runner
from icl.runs.record import RunRecord

KEY = "figure.experiment"
X, C = (1 / 6, 1.0), 0.06  # ranges of x and |c| in the left plot
Y, Z = 0.012, 0.012  # of |y| and z in the right one
STATED_Y = 0.01  # |y| in the claim


class Fig10:
    """records: `surfaces`. `cells` of a drawn grid along each axis, `fine_cells` of what claims rest on."""

    def __init__(self, cells: int, fine_cells: int) -> None:
        self.cells = whole(f"{KEY}.cells", cells, 10, 1000)
        self.fine_cells = whole(f"{KEY}.fine_cells", fine_cells, 50, 5000)

    def records(self, runner: Runner) -> Mapping[str, RunRecord]:
        science = {"cells": self.cells, "fine_cells": self.fine_cells, "seeds": []}
        return {"surfaces": runner.store("giannou/fig10_surfaces", science, self._surfaces)}

    def _surfaces(self) -> dict[str, np.ndarray]:
        x_X, c_C = np.linspace(*X, self.cells + 1), np.linspace(-C, C, self.cells + 1)
        y_Y, z_Z = np.linspace(-Y, Y, self.cells + 1), np.linspace(0, Z, self.cells + 1)
        own_z = own_bound_on_z()
        printed, printed_error = largest_at_sixth(STATED_Y, Z, self.fine_cells)
        own, own_error = largest_at_sixth(STATED_Y, own_z, self.fine_cells)
        found = {
            "x_X": x_X,
            "c_C": c_C,
            "slope_XC": slope(x_X[:, None], c_C[None], np.zeros(1)),
            "y_Y": y_Y,
            "z_Z": z_Z,
            "h_YZ": h(np.full((1, 1), 1 / 6), y_Y[:, None], z_Z[None]),
        }
        numbers = {
            "largest_slope": largest_derivative(self.fine_cells),
            "certificate": least_of_G(self.fine_cells),
            "largest_h": printed,
            "largest_h_error": printed_error,
            "own_z": own_z,
            "largest_h_own": own,
            "largest_h_own_error": own_error,
        }
        return found | {name: np.array(value) for name, value in numbers.items()}
