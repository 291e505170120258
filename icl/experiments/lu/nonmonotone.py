"""Figure 3 of lu: where more examples raise the error on new tasks; formulas alone.

K values of kappa, T of tau, A of alpha.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from icl.errors import real, whole
from icl.experiments.lu.simulated import KEY, positive
from icl.experiments.runner import Runner
from icl.runs.record import RunRecord
from icl.theory.lu.limits import Limit

CURVES = 200  # values of alpha of a curve


class Nonmonotone:
    """records: `exact`, e_ICL by kappa, tau and alpha, and on a grid of kappa and tau the alpha of the least
    e_ICL among all up to `alpha_most`."""

    def __init__(
        self, kappas: Sequence[float], taus: Sequence[float], rho: float, alpha_most: float, grid: int
    ) -> None:
        self.kappas, self.taus = positive("kappas", kappas), positive("taus", taus)
        self.rho = real(f"{KEY}.rho", rho, 0)
        self.alpha_most = real(f"{KEY}.alpha_most", alpha_most, 1, open_low=True)
        self.grid = whole(f"{KEY}.grid", grid, 2, 300)

    def records(self, runner: Runner) -> Mapping[str, RunRecord]:
        science = {
            "kappas": self.kappas,
            "taus": self.taus,
            "rho": self.rho,
            "alpha_most": self.alpha_most,
            "grid": self.grid,
        }
        return {"exact": runner.store("lu/fig3", science, self._exact)}

    def _exact(self) -> dict[str, np.ndarray]:
        alphas = np.geomspace(1, self.alpha_most, CURVES)
        kappas, taus = np.geomspace(0.1, 10, self.grid), np.geomspace(0.1, 30, self.grid)
        at_grid = np.array([[self._curve(kappa, tau, alphas[::4]) for tau in taus] for kappa in kappas])
        least = at_grid.min(-1)
        return {
            "alphas_A": alphas,
            "kappas_K": np.array(self.kappas),
            "taus_T": np.array(self.taus),
            "icl_KTA": np.array([[self._curve(k, tau, alphas) for tau in self.taus] for k in self.kappas]),
            "grid_kappas_K": kappas,
            "grid_taus_T": taus,
            "rise_KT": at_grid[..., -1] / least - 1,
        }

    def _curve(self, kappa: float, tau: float, alphas: np.ndarray) -> list[float]:
        return [Limit(float(alpha), float(kappa), float(tau), self.rho).icl for alpha in alphas]
