"""Figure 2 of giannou: test loss by layers of LSA, and by steps of Newton's iteration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from icl.checks.giannou.mask_floor import least_by_spectrum, spectra
from icl.experiments.giannou.regression import (
    EVALUATED,
    PUBLISHED_LARGEST,
    Law,
    Size,
    baselines,
    losses,
    started,
    store,
    trained,
)
from icl.experiments.runner import Runner
from icl.random import generator
from icl.runs.record import RunRecord


class Fig2:
    """records: a run for every depth, masked and not, from random weights and from the family's best point,
    and `losses`, `baselines`, `floor`."""

    def __init__(
        self,
        dim: int,
        context: int,
        layers: Sequence[int],
        seeds: Sequence[int],
        steps: int,
        started_steps: int,
        prompts: int,
    ) -> None:
        self.size = Size(dim, context, layers, seeds, steps, prompts, started_steps)
        self.law = Law(1.0, PUBLISHED_LARGEST, 0.0)

    def records(self, runner: Runner) -> Mapping[str, RunRecord]:
        size, law, depths = self.size, self.law, self.size.depths
        known = baselines(runner, size, law, depths)
        runs: dict[str, RunRecord] = {}
        for mask in (False, True):
            runs |= trained(runner, size, law, mask, depths)
            runs |= started(runner, size, law, mask, known, depths)
        science = {"size": [size.dim, size.context, size.prompts]}
        floor = store(runner, "giannou/floor", science, self._floor)
        return {**runs, "losses": losses(runner, size, law, runs), "baselines": known, "floor": floor}

    def _floor(self) -> dict[str, np.ndarray]:
        """Of any function of the spectrum of S', whatever the depth (giannou/mask_floor)."""
        n, rng = self.size.context, generator(EVALUATED, "eval")
        s_BD = spectra(rng, self.size.prompts, n + 1, self.size.dim) * (n + 1) / n
        least_B = least_by_spectrum(s_BD, n).numpy()
        return {"mean": np.array(least_B.mean()), "error": np.array(least_B.std() / len(least_B) ** 0.5)}
