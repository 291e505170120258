"""Training plans as `icl train` would build them, small enough for tests."""

import contextlib
import hashlib
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytorch_lightning as pl
import torch

from icl.callbacks.ahn import RiskOnS
from icl.callbacks.checkpoints import Checkpoints
from icl.callbacks.critical_point import CriticalPointGradient
from icl.callbacks.metrics import DistanceToSet, ExactRisk
from icl.errors import Interrupted
from icl.models import LinearTransformer, Parametrization, SparseA
from icl.runs.record import RunRecord
from icl.tasks import LinearRegression
from icl.training.optimizers import OptimizerSpec
from icl.training.plan import EnsembleMember, TrainingPlan, TrainResult
from icl.training.run import Stop, train_runs
from icl.training.schedules import Constant, Schedule
from icl.training.trainer import LoopConfig, TrainerConfig

MakePlan = Callable[..., TrainingPlan]
# For a trainer of Lightning's own.
QUIET: dict[str, Any] = {"max_epochs": 1, "accelerator": "cpu", "enable_model_summary": False}
QUIET |= {"enable_checkpointing": False, "enable_progress_bar": False}


def watching(
    count: int = 1, samples: int = 64, seconds: float = 10.0, more: Sequence[pl.Callback] = ()
) -> tuple[pl.Callback, ...]:
    """Return the callbacks of conf/callbacks/default.yaml, without those that only look."""
    gradient = CriticalPointGradient(count, samples=samples)
    return (DistanceToSet(), RiskOnS(), ExactRisk(count), gradient, Checkpoints(seconds), *more)


@contextlib.contextmanager
def stopped_at(step: int) -> Iterator[list[tuple[int, int]]]:
    """Interrupt the run of the block after this step, as SIGTERM would; yield our steps and the trainer's."""
    on_step_end, seen = Stop.on_step_end, []

    def interrupt(self: Stop, trainer: pl.Trainer, module: Any, now: int) -> None:
        seen.append((now, trainer.global_step))
        if now == step:
            signal.getsignal(signal.SIGTERM)(signal.SIGTERM, None)  # type: ignore[operator, misc, arg-type]
        on_step_end(self, trainer, module, now)

    with pytest.MonkeyPatch.context() as patched, pytest.raises(Interrupted):
        patched.setattr(Stop, "on_step_end", interrupt)
        yield seen


def plan_below(tmp_path: Path) -> MakePlan:
    """Return what makes plans whose outputs are a folder: the fixture `make_plan`."""

    def make(
        seeds: tuple[int, ...] = (0, 1),
        task: dict[str, Any] | None = None,
        family: Callable[[int], Parametrization] = lambda dim: SparseA(dim, 2, 0.01),
        path: str = "gram",
        optimizer: tuple[type[torch.optim.Optimizer], dict[str, Any]] = (torch.optim.Adam, {"lr": 0.02}),
        schedule: Schedule | None = None,
        train: dict[str, Any] | None = None,
        trainer: dict[str, Any] | None = None,
        callbacks: dict[str, Any] | None = None,
        name: str = "run",
    ) -> TrainingPlan:
        law_of = LinearRegression(**({"dim": 2, "context": 6, "task_covariance": "inverse"} | (task or {})))
        return TrainingPlan(
            experiment="tests",
            fingerprint=hashlib.sha256(name.encode()).hexdigest()[:12],
            group="group",
            seeds=seeds,
            law=law_of.law(seeds),
            model=LinearTransformer(family(law_of.dim), path),
            optimizer=OptimizerSpec(*optimizer, schedule or Constant()),
            train=LoopConfig(
                **(
                    {"steps": 12, "batch": 64, "steps_per_batch": 5, "clip": 0.01, "log_every": 1}
                    | (train or {})
                )
            ),
            trainer=TrainerConfig(**({"accelerator": "cpu", "precision": "64-true"} | (trainer or {}))),
            callbacks=watching(**(callbacks or {})),
            outputs=tmp_path,
            config={"name": name},
            digest="digest",
        )

    return make


def train_one(plan: TrainingPlan, *, force: bool = False, **more: Any) -> TrainResult:
    """Train one run, or find it done; raise what prevented it."""
    (outcome,) = train_runs([EnsembleMember(plan, **more)], force=force)
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def assert_identical(record: RunRecord, whole: RunRecord) -> None:
    """Assert equality to the bit of all weights and rows."""
    assert all(np.array_equal(record.weights[name], whole.weights[name]) for name in whole.weights)
    assert (record.path / "metrics.csv").read_bytes() == (whole.path / "metrics.csv").read_bytes()
