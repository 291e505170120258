"""Figures 2 and 3 of lu: errors by the number of examples in a prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from icl.checks.lu.support.settings import MAX_DIM, rising
from icl.errors import InputError, reals, whole
from icl.experiments.lu.double_descent import RIDGELESS
from icl.experiments.lu.simulated import KEY, MAX_DRAWS, Setting, positive, stored
from icl.experiments.runner import Runner
from icl.runs.record import RunRecord


class ContextLength:
    """records: `a`, `b`, ... a panel each: its tau and rho, for each kappa and alpha."""

    def __init__(
        self,
        alphas: Sequence[float],
        taus: Sequence[float],
        rhos: Sequence[float],
        kappas: Sequence[Sequence[float]],
        dims: Sequence[int],
        draws: Sequence[int],
        seed: int,
    ) -> None:
        self.alphas, self.taus = positive("alphas", alphas), positive("taus", taus)
        panels = len(self.taus)
        self.rhos = reals(f"{KEY}.rhos", rhos, panels, 0)
        if isinstance(kappas, str) or not isinstance(kappas, Sequence) or len(kappas) != panels:
            raise InputError(f"{KEY}.kappas={kappas}: must be a list for each of {panels} panels")
        self.kappas = [positive("kappas", some) for some in kappas]
        self.dims = rising(f"{KEY}.dims", dims, 2, MAX_DIM)
        if isinstance(draws, str) or not isinstance(draws, Sequence) or len(draws) != panels:
            raise InputError(f"{KEY}.draws={draws}: must be a number for each of {panels} panels")
        self.draws = [whole(f"{KEY}.draws", count, 2, MAX_DRAWS) for count in draws]
        self.seed = whole(f"{KEY}.seed", seed, 0)

    def records(self, runner: Runner) -> Mapping[str, RunRecord]:
        found = {}
        for i, (tau, rho) in enumerate(zip(self.taus, self.rhos, strict=True)):
            name = "abcdefgh"[i]
            settings = [
                Setting(alpha, kappa, tau, rho, RIDGELESS)
                for kappa in self.kappas[i]
                for alpha in self.alphas
            ]
            found[name] = stored(
                runner, f"fig2{name}", settings, "alpha", self.dims, self.draws[i], self.seed
            )
        return found
