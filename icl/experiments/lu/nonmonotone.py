"""Figure 3 of lu: where more examples raise the error, by kappa and rho; formulas alone.

P panels, N values of rho, K of kappa.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from icl.errors import InputError, one_of, real, whole
from icl.experiments.lu.simulated import KEY, positive
from icl.experiments.runner import Runner
from icl.progress import track
from icl.runs.record import RunRecord
from icl.theory.lu.limits import Limit

BEYOND = 10.0 ** np.arange(4, 9)  # values of alpha far above those of the map
MOST_ALPHA = 1e6
ERRORS = ("icl", "idg")


class Nonmonotone:
    """records: `exact`, for each panel's tau and error and on a grid of kappa and rho: the largest rise of
    the error over its least at fewer examples, among alpha up to `alpha_most` (`rise_PNK`) and among larger
    ones as well (`rise_beyond_PNK`), and the alpha of this least error (`alpha_PNK`)."""

    def __init__(
        self, taus: Sequence[float], errors: Sequence[str], alpha_most: float, grid: int, alphas: int
    ) -> None:
        self.taus = positive("taus", taus)
        listed = isinstance(errors, Sequence) and not isinstance(errors, str)
        if not listed or len(errors) != len(self.taus):
            raise InputError(f"{KEY}.errors={errors}: must be icl or idg for each of {len(self.taus)} taus")
        self.errors = [one_of(f"{KEY}.errors", error, ERRORS) for error in errors]
        self.alpha_most = real(f"{KEY}.alpha_most", alpha_most, 1, open_low=True)
        if self.alpha_most > MOST_ALPHA:
            raise InputError(f"{KEY}.alpha_most={alpha_most}: must be at most {MOST_ALPHA:g}")
        self.grid, self.alphas = whole(f"{KEY}.grid", grid, 2, 500), whole(f"{KEY}.alphas", alphas, 10, 1000)

    def records(self, runner: Runner) -> Mapping[str, RunRecord]:
        science = {
            "taus": self.taus,
            "errors": self.errors,
            "alpha_most": self.alpha_most,
            "grid": self.grid,
            "alphas": self.alphas,
        }
        return {"exact": runner.store("lu/fig3", science, self._exact)}

    def _exact(self) -> dict[str, np.ndarray]:
        kappas, rhos = np.linspace(0.1, 2.1, self.grid), np.linspace(0.01, 1, self.grid)
        alphas = np.append(np.geomspace(0.01, self.alpha_most, self.alphas), self.alpha_most * BEYOND)
        panels = list(zip(self.taus, self.errors, strict=True))
        rows = track([(p, rho) for p in panels for rho in rhos], "maps", len(panels) * self.grid)
        found = [[self._at(*p, float(kappa), float(rho), alphas) for kappa in kappas] for p, rho in rows]
        table = np.array(found).reshape(len(panels), self.grid, self.grid, 3)
        return {
            "kappas_K": kappas,
            "rhos_N": rhos,
            "taus_P": np.array(self.taus),
            "new_P": np.array([error == "icl" for error in self.errors]),
            "rise_PNK": table[..., 0],
            "rise_beyond_PNK": table[..., 1],
            "alpha_PNK": table[..., 2],
        }

    def _at(
        self, tau: float, error: str, kappa: float, rho: float, alphas: np.ndarray
    ) -> tuple[float, float, float]:
        e_A = np.array([getattr(Limit(float(alpha), kappa, tau, rho), error) for alpha in alphas])
        rise_A = e_A / np.minimum.accumulate(e_A) - 1
        most = int(rise_A[: self.alphas].argmax())
        return float(rise_A[most]), float(rise_A.max()), float(alphas[e_A[: most + 1].argmin()])
