"""Figures 1 and 7 of giannou: encoders trained on logistic regression, against steps of damped Newton.

R seeds, L depths, T Newton steps from x = 0, B prompts, D covariates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from icl.config import resolve_seeds
from icl.errors import InputError, whole
from icl.experiments.runner import Runner
from icl.experiments.training import KEY, TrainingSettings, different
from icl.random import generator
from icl.runs.record import RunRecord
from icl.tasks.logistic_regression import LogisticRegression, LogisticRegressionLaw
from icl.theory.logistic import LogisticLoss
from icl.training.load import restored
from icl.training.threads import threads

MAX_LAYERS, MAX_STEPS = 64, 20


class Logistic:
    """records: the run `L=l` of every depth, and `losses`, those of fresh prompts.

    `inversion_steps`: k of Theorem 5.2, whose construction takes 11 + 2k layers for a Newton step.
    `decisive`: whether training is the paper's own, so that what it misses says something of the paper.
    """

    def __init__(
        self,
        layers: Sequence[int],
        seeds: Sequence[int],
        dim: int,
        context: int,
        mu: float,
        newton_steps: int,
        inversion_steps: int,
        prompts: int,
        decisive: bool = False,
        steps: int | None = None,
        lr: float | None = None,
    ) -> None:
        self.layers = sorted(different("layers", layers, 1, MAX_LAYERS))
        self.seeds = resolve_seeds(seeds, None)
        self.training = TrainingSettings(steps=steps, lr=lr)
        task = LogisticRegression(dim, context, mu, prefix=KEY)
        self.settings = {"dim": task.dim, "context": task.context, "mu": task.mu}
        self.newton_steps = whole(f"{KEY}.newton_steps", newton_steps, 2, MAX_STEPS)
        self.inversion_steps = whole(f"{KEY}.inversion_steps", inversion_steps, 1)
        self.prompts = whole(f"{KEY}.prompts", prompts, 2)
        if not isinstance(decisive, bool):
            raise InputError(f"{KEY}.decisive={decisive}: must be true or false")
        self.decisive = decisive

    def records(self, runner: Runner) -> Mapping[str, RunRecord]:
        runs = {
            f"L={layers}": runner.train("giannou/logistic", self._overrides(layers)) for layers in self.layers
        }
        marks = ("fingerprint", "digest", "attempt")
        science = {
            "runs": [[run.run[mark] for mark in marks] for run in runs.values()],
            "layers": self.layers,
            "seeds": list(self.seeds),
            "newton_steps": self.newton_steps,
            "inversion_steps": self.inversion_steps,
            "prompts": self.prompts,
            "decisive": self.decisive,
        }
        losses = runner.store("giannou/logistic_losses", science, lambda: self._losses(list(runs.values())))
        return {**runs, "losses": losses}

    def _overrides(self, layers: int) -> dict[str, Any]:
        own: dict[str, Any] = {f"task.{name}": value for name, value in self.settings.items()}
        own |= {"seeds": list(self.seeds), "model.layers": layers, **self.training.overrides()}
        if (steps := self.training.steps) is None:
            return own
        warmup = max(1, steps // 10)  # as at every scale
        return own | {"optimizer.schedule.warmup": warmup, "optimizer.schedule.decay": steps - warmup}

    def _losses(self, runs: Sequence[RunRecord]) -> dict[str, np.ndarray]:
        """Means over the same prompts of each seed; differences to the minimum and to Newton's steps pair by
        pair, with their standard errors."""
        law = restored(runs[0]).law
        assert isinstance(law, LogisticRegressionLaw)
        with torch.no_grad(), threads(1):
            streams = [generator(seed, "eval") for seed in self.seeds]
            prompt, best_RBD = law.prompts_and_targets(streams, self.prompts)
            points_BND = prompt.context_RBNP[..., :-1].flatten(0, 1)
            loss = LogisticLoss(points_BND, prompt.context_RBNP[..., -1].flatten(0, 1), law.mu)

            def values(x_RBD: torch.Tensor) -> np.ndarray:
                return loss.value(x_RBD.flatten(0, 1)).unflatten(0, best_RBD.shape[:2]).numpy()

            least_RB = values(best_RBD)
            newton = [torch.zeros_like(best_RBD)]
            for _ in range(self.newton_steps):
                newton.append(loss.damped_step(newton[-1].flatten(0, 1)).unflatten(0, best_RBD.shape[:2]))
            newton_TRB = np.stack([values(x_RBD) for x_RBD in newton])
            read = [restored(run).transformer.read(prompt) for run in runs]
            trained_LRB = np.stack([values(x_RBD) for x_RBD in read])
            error_LR = np.stack([(x_RBD - best_RBD).square().mean((-1, -2)).numpy() for x_RBD in read])
        gap_LTRB = trained_LRB[:, None] - newton_TRB
        return {
            "layers_L": np.array(self.layers),
            "inversion_steps": np.array(self.inversion_steps),
            "decisive": np.array(self.decisive),
            "least_R": least_RB.mean(-1),
            "newton_TR": newton_TRB.mean(-1),
            "trained_LR": trained_LRB.mean(-1),
            "newton_excess_TR": (newton_TRB - least_RB).mean(-1),
            "trained_excess_LR": (trained_LRB - least_RB).mean(-1),
            "gap_LTR": gap_LTRB.mean(-1),
            "gap_stderr_LTR": gap_LTRB.std(-1, ddof=1) / self.prompts**0.5,
            "error_LR": error_LR,
            "variance_R": best_RBD.square().mean((-1, -2)).numpy(),  # x* has mean zero
        }
