"""Figures 3 to 5 of ahn: one training run of (11), the minima on S, and what a batch shows of the risk.

R replicas, L layers, D covariates, T stored steps, M minima, K batches of the paper's size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from icl.errors import whole
from icl.experiments.ahn import trained
from icl.experiments.runner import Runner
from icl.experiments.training import TrainingSettings
from icl.models import LinearTransformer
from icl.random import generator
from icl.ranges import MOST_STARTS
from icl.runs.record import RunRecord
from icl.tasks import LinearRegressionLaw
from icl.tasks.integrated import Tilted
from icl.tasks.linear_regression import linear_regression
from icl.theory.ahn.invariant_risk import InvariantRisk
from icl.training.estimators import make_estimator
from icl.training.load import TrainedRun, restored

MAX_LAYERS = 4  # of the exact polynomial with B
HALVINGS = 25  # of the learning rate, as at paper scale; L-BFGS has a constant one


class Theorem4:
    """records: `run`, the trained seeds; `plain`, the same on plain prompts, as in the paper, whose batches
    do not show the risk's tail; `exact`, what the figures compare them with.

    `context` is 10 in the text and 20 in the published notebook; `starts` of the search for minima on S;
    `batches` of 20,000 fresh prompts on which the trained weights are evaluated.
    """

    def __init__(
        self,
        context: int = 10,
        starts: int = 64,
        batches: int = 10,
        layers: int | None = None,
        dim: int | None = None,
        seeds: Sequence[int] | None = None,
        steps: int | None = None,
        lr: float | None = None,
    ) -> None:
        self.context = whole("figure.experiment.context", context, 1)
        if layers is not None:
            whole("figure.experiment.layers", layers, 2, MAX_LAYERS)
        self.training = TrainingSettings(layers, dim, context, seeds, steps, lr)
        self.starts = whole("figure.experiment.starts", starts, 1, MOST_STARTS)
        self.batches = whole("figure.experiment.batches", batches, 1, trained.MOST_BATCHES)

    def records(self, runner: Runner) -> Mapping[str, RunRecord]:
        name = "ahn/theorem4" if runner.scale == "paper" else "ahn/theorem4_lbfgs"
        own = self.training.overrides(HALVINGS if runner.scale == "paper" else None)
        run = runner.train(name, own)
        plain = run
        if runner.scale != "paper":  # there the run itself is on plain prompts
            plain = runner.train(name, {**own, "train.estimator": "expected"})
        science = {
            "of": [trained.identity(run), trained.identity(plain)],
            "starts": self.starts,
            "batches": self.batches,
            "seeds": run.run["seeds"],
        }
        exact = runner.store("ahn/theorem4_exact", science, lambda: self._exact(run, plain))
        return {"run": run, "plain": plain, "exact": exact}

    def _exact(self, run: RunRecord, plain: RunRecord) -> dict[str, np.ndarray]:
        trained_run = restored(run)
        law = linear_regression(trained_run.law, "ahn/theorem4_exact")
        family = InvariantRisk(law.dim, self.context, run.A.shape[1], with_b=True)
        minima = family.minimise(generator(0, "search"), self.starts)
        best = minima[0]
        a_RL, beta_RL = trained.projection_scalars(run)
        seeds = run.run["seeds"]
        plain_run = restored(plain)
        return {
            "dim": np.array(law.dim),
            "null_risk": np.array(float(law.dim)),  # E (w.x)^2 = tr(Sigma_w Sigma)
            "best_risk": np.array(best.risk),
            "without_b": np.array(InvariantRisk(law.dim, self.context, run.A.shape[1]).optimum().risk),
            "best_a_L": best.a_L,
            "best_b_L": best.b_L,
            "lower_bound": np.array(float(family.lower_bound())),
            "a_RL": a_RL,
            "beta_RL": beta_RL,
            "risk_on_s_R": _risk_on_s(family, run),
            "minima_M": np.array([minimum.risk for minimum in minima]),
            **_batch_losses(trained_run, law, seeds, self.batches),
            "plain_risk_on_s_R": _risk_on_s(family, plain),
            "plain_batch_RK": self._batches(plain_run.transformer, law, seeds),
            "plain_projected_batch_RK": self._batches(
                plain_run.with_weights(trained.project_on_s(plain)), law, seeds
            ),
            "white_RLDD": trained.whiten(run),
            "dist_inverse_R": trained.distances_of_inverse(run),
            "norm_A_RL": np.linalg.norm(run.A, axis=(2, 3)),
        }

    def _batches(self, model: LinearTransformer, law: LinearRegressionLaw, seeds: list[int]) -> np.ndarray:
        """Losses of fresh batches, task and query integrated out; the same prompts for any weights."""
        streams, expected = (
            [generator(seed, "eval") for seed in seeds],
            make_estimator("expected", model, law),
        )
        losses = [
            trained.mean_risk(expected, model, expected.draw(streams, trained.BATCH))
            for _ in range(self.batches)
        ]
        return torch.stack(losses, dim=1).numpy()


def _risk_on_s(family: InvariantRisk, run: RunRecord) -> np.ndarray:
    scalars_RLL = zip(*(scalars.tolist() for scalars in trained.projection_scalars(run)), strict=True)
    return np.array([family.value(a_L, beta_L) for a_L, beta_L in scalars_RLL])


def _batch_losses(
    run: TrainedRun, law: LinearRegressionLaw, seeds: list[int], batches: int
) -> dict[str, np.ndarray]:
    """Return the risk at the stored weights by one weighted draw, which shows the tail, and by the paper's
    batch; at the final weights by `batches` weighted draws, with the standard error.

    None of these prompts was trained on.
    """
    tilted = make_estimator("tilted", run.transformer, law)
    assert isinstance(tilted, Tilted)
    streams = [generator(seed, "check") for seed in seeds]
    weighted = tilted.draw(streams, trained.BATCH)
    plain = tilted.inner.draw([generator(seed, "eval", 1) for seed in seeds], trained.BATCH)
    steps, risks, seen = [], [], []
    at: Any
    stored = list(run.stored_models())
    for step, at in [*stored[:-1:2], stored[-1]]:  # 40,000 prompts a seed for each
        steps.append(step)
        risks.append(trained.mean_risk(tilted, at, weighted))
        seen.append(trained.mean_risk(tilted.inner, at, plain))
    return {
        "steps": np.array(steps),
        "risk_RT": torch.stack(risks, dim=1).numpy(),
        "batch_RT": torch.stack(seen, dim=1).numpy(),
        **trained.sampled_risk(tilted, at, streams, batches),
    }
