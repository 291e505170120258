"""Figure 3 of looped: training of a shared layer, and descent by the exact gradient.

T steps, D = 2 covariates, R seeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from icl.checks.looped.support.descent import descend, rotation_of
from icl.checks.looped.support.rotations import best_rotation
from icl.errors import InputError, whole
from icl.experiments.looped.loops import KEY
from icl.experiments.runner import Runner
from icl.experiments.training import TrainingSettings
from icl.random import generator
from icl.runs.record import RunRecord
from icl.tasks.linear_regression import linear_regression
from icl.theory.looped.equal_steps import EqualSteps
from icl.theory.looped.plane import PlaneRisk
from icl.training.load import restored

HALVINGS = 5  # of the learning rate, as at laptop and paper scale


class Training:
    """records: `run`, the trained seeds, and `exact`, what they are compared with."""

    def __init__(
        self,
        descent_steps: int,
        layers: int | None = None,
        context: int | None = None,
        seeds: Sequence[int] | None = None,
        steps: int | None = None,
        lr: float | None = None,
    ) -> None:
        self.steps = whole(f"{KEY}.descent_steps", descent_steps, 1)
        self.training = TrainingSettings(layers, None, context, seeds, steps, lr)

    def records(self, runner: Runner) -> Mapping[str, RunRecord]:
        run = runner.train("looped/shared", self.training.overrides(HALVINGS))
        science = {"of": run.mark, "steps": self.steps, "seeds": run.run["seeds"]}
        return {"run": run, "exact": runner.store("looped/training", science, lambda: self._exact(run))}

    def _exact(self, run: RunRecord) -> dict[str, np.ndarray]:
        trained = restored(run)
        law, family = linear_regression(trained.law, "looped/training"), trained.transformer.parametrization
        if law.dim != 2:
            raise InputError(f"task.dim={law.dim}: the figure is of two covariates")
        steps = EqualSteps(2, law.context_R[0], family.layers)
        best, rule = best_rotation(steps, 0), PlaneRisk(steps.context, steps.layers).rule
        root_RDD = law.root_RDD.numpy()
        white_RDD = root_RDD.swapaxes(1, 2) @ run.A[:, 0] @ root_RDD
        starts = {
            "random": 0.01 * generator(0, "init").standard_normal((2, 2)),
            "scalar": 0.01 * np.eye(2),
        }
        paths = {name: descend(rule, start, self.steps) for name, start in starts.items()}
        found = {
            "scalar_a": np.array(steps.best),
            "scalar_risk": np.array(steps.least_risk),
            "best_a": np.array(best.a),
            "best_b": np.array(best.b[0]),
            "best_risk": np.array(best.risk),
            "eigenvalues_RD": np.linalg.eigvals(white_RDD),
            "trained_risk_R": np.array([rule.value(A_DD) for A_DD in white_RDD]),
            "separate_risk": np.array(float(steps.separate_risk)),
        }
        for name, (A_TDD, risk_T) in paths.items():
            found[f"{name}_risk_T"], found[f"{name}_b_T"] = risk_T, rotation_of(A_TDD)
            found[f"{name}_a_T"] = np.trace(A_TDD, axis1=1, axis2=2) / 2
        eigenvalues_RD = found.pop("eigenvalues_RD")
        return found | {"real_RD": eigenvalues_RD.real, "imag_RD": eigenvalues_RD.imag}
