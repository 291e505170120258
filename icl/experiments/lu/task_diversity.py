"""Figure 4 of lu: errors on new tasks less those on old ones, by the number of tasks, beside dMMSE.

A values of alpha, K of kappa.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from icl.algorithms import DiscreteMMSE
from icl.checks.lu.support.settings import MAX_DIM, rising
from icl.errors import real, whole
from icl.experiments.lu.double_descent import RIDGELESS
from icl.experiments.lu.simulated import KEY, MAX_DRAWS, Setting, positive, stored
from icl.experiments.runner import Runner
from icl.progress import track
from icl.random import generator
from icl.runs.record import RunRecord
from icl.tasks import LinearRegression
from icl.tasks.linear_regression import TaskDiversityLaw


class TaskDiversity:
    """records: `attention`, for each alpha and kappa with tau = `tau_by_alpha` alpha, and `dmmse`, the
    posterior mean over the same number of tasks at the largest of the dims."""

    def __init__(
        self,
        alphas: Sequence[float],
        kappas: Sequence[float],
        dmmse_kappas: Sequence[float],
        tau_by_alpha: float,
        rho: float,
        dims: Sequence[int],
        draws: int,
        prompts: int,
        seed: int,
    ) -> None:
        self.alphas, self.kappas = positive("alphas", alphas), positive("kappas", kappas)
        self.dmmse_kappas = positive("dmmse_kappas", dmmse_kappas)
        self.tau_by_alpha = real(f"{KEY}.tau_by_alpha", tau_by_alpha, 0, open_low=True)
        self.rho = real(f"{KEY}.rho", rho, 0, open_low=True)
        self.dims = rising(f"{KEY}.dims", dims, 2, MAX_DIM)
        self.draws = whole(f"{KEY}.draws", draws, 2, MAX_DRAWS)
        self.prompts = whole(f"{KEY}.prompts", prompts, 10, MAX_DRAWS)
        self.seed = whole(f"{KEY}.seed", seed, 0)

    def records(self, runner: Runner) -> Mapping[str, RunRecord]:
        settings = [
            Setting(alpha, kappa, self.tau_by_alpha * alpha, self.rho, RIDGELESS)
            for alpha in self.alphas
            for kappa in self.kappas
        ]
        science = {
            "alphas": self.alphas,
            "kappas": self.dmmse_kappas,
            "rho": self.rho,
            "dim": self.dims[-1],
            "draws": self.draws,
            "prompts": self.prompts,
            "seed": self.seed,
        }
        return {
            "attention": stored(runner, "fig4", settings, "kappa", self.dims, self.draws, self.seed),
            "dmmse": runner.store("lu/dmmse", science, self._dmmse),
        }

    def _dmmse(self) -> dict[str, np.ndarray]:
        cells = [(alpha, kappa) for alpha in self.alphas for kappa in self.dmmse_kappas]
        gaps = [self._gap(alpha, kappa) for alpha, kappa in track(cells, "dMMSE", len(cells))]
        table = np.array(gaps).reshape(len(self.alphas), len(self.dmmse_kappas), 2)
        return {
            "alphas_A": np.array(self.alphas),
            "kappas_K": np.array(self.dmmse_kappas),
            "gap_AK": table[..., 0],
            "gap_stderr_AK": table[..., 1],
        }

    def _gap(self, alpha: float, kappa: float) -> tuple[float, float]:
        """Return the mean loss on new tasks less that on old ones, over replicas with tasks of their own."""
        d, tasks = self.dims[-1], max(1, round(kappa * self.dims[-1]))
        context = max(1, round(alpha * d))
        law = LinearRegression(
            d, context, covariance=(np.eye(d) / d).tolist(), label_noise=self.rho, tasks=tasks,
            task_law="sphere",
        ).law([self.seed + r for r in range(self.draws)])  # fmt: skip
        assert isinstance(law, TaskDiversityLaw) and law.tasks_RKD is not None and law.new_tasks is not None
        model = DiscreteMMSE(law.tasks_RKD, self.rho, context)
        loss_R = []
        for which, source in enumerate((law.new_tasks, law)):
            rngs = [generator(self.seed + r, "eval", which) for r in range(self.draws)]
            prompt = source.gram_prompts(rngs, self.prompts)
            loss_R.append((model.predict(prompt) - prompt.target_RB).square().mean(1).numpy())
        gap_R = loss_R[0] - loss_R[1]
        return float(gap_R.mean()), float(gap_R.std(ddof=1) / len(gap_R) ** 0.5)
