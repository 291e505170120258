"""Figure 1 of lu: errors by the number of pretraining prompts, with and without a ridge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from icl.checks.lu.support.settings import MAX_DIM, rising
from icl.errors import real, whole
from icl.experiments.lu.simulated import KEY, MAX_DRAWS, Setting, positive, stored
from icl.experiments.runner import Runner
from icl.runs.record import RunRecord

RIDGELESS = 1e-5


class DoubleDescent:
    """records: `plain`, for each alpha and tau, and `ridge`, for each lambda and tau (and tau = 1) with a new
    task in every prompt at the middle alpha; the latter without the largest of three dims."""

    def __init__(
        self,
        alphas: Sequence[float],
        taus: Sequence[float],
        ridges: Sequence[float],
        kappa: float,
        rho: float,
        dims: Sequence[int],
        draws: int,
        seed: int,
    ) -> None:
        self.alphas, self.taus = positive("alphas", alphas), positive("taus", taus)
        self.ridges = positive("ridges", ridges)
        self.kappa = real(f"{KEY}.kappa", kappa, 0, open_low=True)
        self.rho = real(f"{KEY}.rho", rho, 0)
        self.dims = rising(f"{KEY}.dims", dims, 2, MAX_DIM)
        self.draws = whole(f"{KEY}.draws", draws, 2, MAX_DRAWS)
        self.seed = whole(f"{KEY}.seed", seed, 0)

    def records(self, runner: Runner) -> Mapping[str, RunRecord]:
        middle = self.alphas[len(self.alphas) // 2]
        plain = [
            Setting(alpha, self.kappa, tau, self.rho, RIDGELESS) for alpha in self.alphas for tau in self.taus
        ]
        taus = sorted({*self.taus, 1.0})
        ridge = [Setting(middle, np.inf, tau, self.rho, lam) for lam in self.ridges for tau in taus]
        return {
            "plain": stored(runner, "plain", plain, "tau", self.dims, self.draws, self.seed),
            "ridge": stored(runner, "ridge", ridge, "tau", self.dims[:2], self.draws, self.seed),
        }
