"""Runs that Figures 1 to 5 of xie need: H heads, or of y_q-LSA, at one size, and their exact risks.

Vectors point along (1, ..., 1): at Sigma = I and Sigma_w = I only their lengths and the angle between them
count, and settings give squared lengths, in which every effect is linear.
R seeds, S stored steps, X settings, H heads, D covariates, C `context` tokens.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from icl.config import resolve_seeds
from icl.errors import InputError, real, whole
from icl.experiments.runner import Runner
from icl.experiments.training import KEY, TrainingSettings
from icl.random import generator
from icl.runs.record import RunRecord
from icl.tasks import LinearRegression
from icl.tasks.exact import EXACT_LAYER_DIM
from icl.theory.quadratic import QuadraticRisk
from icl.training.load import restored
from icl.training.threads import threads

HALVINGS = 6  # of the learning rate, as at laptop scale
RESTARTS = 2  # of alternating least squares, for each number of heads


@dataclass(frozen=True)
class RunSize:
    """d, C and the seeds of every run of a figure, steps and learning rate of the long ones, null for the
    experiment's. Runs with the same settings are shared by figures."""

    dim: int
    context: int
    seeds: Sequence[int]
    steps: int | None = None
    lr: float | None = None

    def __post_init__(self) -> None:
        self.training.overrides()
        whole(f"{KEY}.dim", self.dim, 1, EXACT_LAYER_DIM)
        whole(f"{KEY}.context", self.context, 1)
        resolve_seeds(self.seeds, None)

    def heads(self, runner: Runner, heads: int, **settings: Any) -> RunRecord:
        """Training of H heads; see `_overrides`."""
        return runner.train("xie/heads", {"model.heads": heads} | self._overrides(**settings))

    def yq_lsa(self, runner: Runner, **settings: Any) -> RunRecord:
        """Training of one head with its initial guess."""
        return runner.train("xie/yq_lsa", self._overrides(**settings))

    def _overrides(
        self,
        prior: float = 0.0,
        guess: float = 0.0,
        bias: float = 0.0,
        minibatch: Minibatch | None = None,
    ) -> dict[str, Any]:
        """`prior` = |w*|^2, `guess` = |v|^2 and `bias` = b^2 of a fixed guess."""
        found: dict[str, Any] = {
            "seeds": list(self.seeds),
            "checks": [],
            "callbacks.heatmaps.count": 0,  # dozens of runs; a run asked for by itself has its pictures
            "task.dim": self.dim,
            "task.context": self.context,
            "task.prior_mean_norm": prior**0.5,
            "task.guess_bias": bias**0.5,
        }
        found |= {"task.guess_vector_norm": guess**0.5} if guess else {}
        return found | (self.training.overrides(HALVINGS) if minibatch is None else minibatch.overrides())

    @property
    def training(self) -> TrainingSettings:
        return TrainingSettings(steps=self.steps, lr=self.lr)

    def risk(self, prior: float = 0.0, guess: float = 0.0, bias: float = 0.0) -> QuadraticRisk:
        """Return the exact risk in the same setting."""
        task = LinearRegression(
            dim=self.dim,
            context=self.context,
            covariance="identity",
            prior_mean_norm=prior**0.5,
            guess_vector_norm=guess**0.5,
            guess_bias=bias**0.5,
            read_out=1,
        )
        return QuadraticRisk.linear_regression(**task.law([0]).risk_arguments())


@dataclass(frozen=True)
class Minibatch:
    """A short run on fresh tasks each step, as the paper trained, beside those on the population risk."""

    steps: int
    batch: int
    rate = 0.02  # the paper's is for 5000 steps; halved twice on the way

    def __post_init__(self) -> None:
        whole(f"{KEY}.minibatch_steps", self.steps, 1)
        whole(f"{KEY}.minibatch_size", self.batch, 1)

    def overrides(self) -> dict[str, Any]:
        return {
            "train.estimator": "sampled",
            "train.batch": self.batch,
            "train.steps": self.steps,
            "train.steps_per_batch": 1,
            "optimizer.lr": self.rate,
            "optimizer.schedule.every": -(-self.steps // 3),
            "trainer.precision": "32-true",
        }


def wholes(name: str, values: Any, low: int, high: int | None = None, *, least: int = 1) -> list[int]:
    """Different integers, `least` of them at least, in ascending order."""
    return sorted(whole(name, value, low, high) for value in _distinct(name, values, least))


def squares(name: str, values: Any, *, least: int = 1) -> list[float]:
    """Different numbers, none negative, in ascending order."""
    return sorted(real(name, value, 0) for value in _distinct(name, values, least))


def _distinct(name: str, values: Any, least: int) -> list[Any]:
    if isinstance(values, str) or not isinstance(values, Sequence) or len(values) < least:
        raise InputError(f"{name}={values}: must be a list of at least {least} numbers")
    if len(set(values)) < len(values):
        raise InputError(f"{name}={list(values)}: has duplicates")
    return list(values)


def store(
    runner: Runner, name: str, science: Mapping[str, Any], compute: Callable[[], Mapping[str, np.ndarray]]
) -> RunRecord:
    """`runner.store`, computed on one thread: the matrices are tiny, and threads wait for one another.
    Measured on two busy cores: 84 s for alternating least squares, 4 s on one thread."""

    @functools.wraps(compute)  # it stays the code of the module it is written in
    def alone() -> Mapping[str, np.ndarray]:
        with threads(1):
            return compute()

    return runner.store(name, science, alone)


def identity(runs: Iterable[RunRecord]) -> list[list[Any]]:
    """Return the settings that determine arrays computed from these runs."""
    return [run.mark for run in runs]


def risks(run: RunRecord) -> np.ndarray:
    """Return the exact risk of every seed at the stored steps, (R, S), however the run was trained."""
    trained = restored(run)
    risk = trained.law.exact_risk(trained.transformer)
    assert risk is not None, "one layer is exact"
    return torch.stack([risk(model) for _, model in trained.stored_models()], dim=1).numpy()


def curves(runs: Sequence[RunRecord]) -> dict[str, np.ndarray]:
    """`steps_S` and `risk_XRS` of runs of one length."""
    return {
        "steps_S": runs[0].weights["history_steps"],
        "risk_XRS": np.stack([risks(run) for run in runs]),
    }


def best_risk(risk: QuadraticRisk, heads: int) -> float:
    """Return the least risk found with so many heads."""
    return risk.best_with_heads(heads, generator(0, "search", heads), RESTARTS).value
