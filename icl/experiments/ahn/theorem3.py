"""Figures 1 and 2 of ahn: one training run of (8), its exact risk on the way, the optimum it heads for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch

from icl.experiments.ahn import trained
from icl.experiments.runner import Runner
from icl.experiments.training import TrainingSettings
from icl.runs.record import RunRecord
from icl.tasks.linear_regression import linear_regression
from icl.theory.ahn.invariant_risk import InvariantRisk
from icl.training.load import restored

HALVINGS = 10  # of the learning rate, as at laptop scale


class Theorem3:
    """records: `run`, the trained seeds, and `exact`, what the figures compare them with."""

    def __init__(
        self,
        layers: int | None = None,
        dim: int | None = None,
        context: int | None = None,
        seeds: Sequence[int] | None = None,
        steps: int | None = None,
        lr: float | None = None,
    ) -> None:
        self.training = TrainingSettings(layers, dim, context, seeds, steps, lr)

    def records(self, runner: Runner) -> Mapping[str, RunRecord]:
        run = runner.train("ahn/theorem3", self.training.overrides(HALVINGS))
        science = {"of": trained.identity(run), "seeds": run.run["seeds"]}
        return {"run": run, "exact": runner.store("ahn/theorem3_exact", science, lambda: exact(run))}


def exact(run: RunRecord) -> dict[str, np.ndarray]:
    """Risks without sampling error; arrays by seed R, layer L or stored step T."""
    trained_run = restored(run)
    law = linear_regression(trained_run.law, "ahn/theorem3_exact")
    risk = law.exact_risk(trained_run.transformer)
    stored = list(trained_run.stored_models())
    risk_TR = [] if risk is None else [risk(model) for _, model in stored]  # exact up to three layers
    family = InvariantRisk(law.dim, law.context_R[0], run.A.shape[1])
    optimum = family.optimum()
    a_RL, _ = trained.projection_scalars(run)
    return {
        "dim": np.array(law.dim),
        "context": np.array(law.context_R[0]),
        "steps": np.array([step for step, _ in stored]),
        **({"risk_RT": torch.stack(risk_TR, dim=1).numpy()} if risk_TR else {}),
        "null_risk": np.array(float(law.dim)),  # E (w.x)^2 = tr(Sigma_w Sigma)
        "optimal_risk": np.array(optimum.risk),
        "optimal_a_L": optimum.a_L,
        "a_RL": a_RL,
        "risk_on_s_R": np.array([family.value(a_L.tolist()) for a_L in a_RL]),
        "white_RLDD": trained.whiten(run),
        "dist_inverse_R": trained.distances_of_inverse(run),
    }
