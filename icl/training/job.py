"""The steps of a training run and the numbers it leaves, from a validated plan to a finished record.

The story: continue from the checkpoint or start, train, judge, finish. A run's code digest starts here
(icl.runs.code), so whoever follows it, a logger or a progress bar, and whoever keeps it is handed in.
"""

from __future__ import annotations

import itertools
import logging
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pytorch_lightning as pl
import torch
from pytorch_lightning.loggers import Logger
from torch import Tensor
from torch.utils.data import DataLoader

from icl.errors import Interrupted
from icl.models import LinearTransformer
from icl.models.coordinates import Coordinates
from icl.runs.aggregate import aggregate
from icl.tasks.law import Law
from icl.training.critical_point import CriticalPoint
from icl.training.estimators import make_estimator
from icl.training.interrupts import Interrupts
from icl.training.module import EnsembleModule
from icl.training.optimizers import OptimizerSpec
from icl.training.recorder import Recorder, Row
from icl.training.settings import CallbackSettings, TrainerSettings, TrainSettings
from icl.training.stream import PromptStream
from icl.training.threads import threads

if TYPE_CHECKING:
    from icl.runs.record import RunRecord
    from icl.runs.store import ActiveRun

Judge = Callable[[LinearTransformer, Law], Sequence[Mapping[str, Any]]]


@dataclass(frozen=True)
class TrainingPlan:
    """Everything a run needs, built and validated; nothing has been written yet."""

    experiment: str
    fingerprint: str
    group: str
    seeds: tuple[int, ...]
    law: Law
    model: LinearTransformer
    optimizer: OptimizerSpec
    train: TrainSettings
    trainer: TrainerSettings
    callbacks: CallbackSettings
    outputs: Path
    config: Mapping[str, Any] = field(repr=False)
    digest: str = ""
    roots: tuple[str, ...] = ()


class Follower(Protocol):
    """Told of a run while it is made, or of the record that is there already. No number depends on it."""

    def wants(self, step: int) -> bool: ...

    def see(self, step: int, matrices: Mapping[str, Tensor]) -> None: ...

    def reach(self, step: int) -> None:
        """`step` optimizer steps have been taken."""

    def rows(self, rows: Sequence[Row]) -> None:
        """One step's row of each seed."""

    def loggers(self) -> Sequence[Logger]:
        """Lightning's own, for what a callback logs."""

    def done(self, record: RunRecord) -> None: ...

    def found(self, record: RunRecord) -> None: ...


def train(
    plan: TrainingPlan, run: ActiveRun, followers: Sequence[Follower], judge: Judge | None
) -> RunRecord:
    """From where `run` stands to its record."""
    saved = run.checkpoint
    with threads(plan.trainer.threads if saved is None else saved["threads"]):
        return _train_from(saved, plan, run, followers, judge)


def _train_from(
    saved: dict[str, Any] | None,
    plan: TrainingPlan,
    run: ActiveRun,
    followers: Sequence[Follower],
    judge: Judge | None,
) -> RunRecord:
    plan.model.parametrization.initialise(plan.seeds, plan.trainer.dtype)
    first_step = 0 if saved is None else int(saved["step"])
    recorder = Recorder(
        plan.model,
        plan.law,
        plan.seeds,
        plan.train.steps,
        plan.train.log_every,
        CriticalPoint(plan.model, plan.law, plan.seeds, plan.callbacks.gradient_samples),
        plan.callbacks.gradient_count,
        reliability_names=make_estimator(plan.train.estimator, plan.model, plan.law).reliability_names,
    )
    if saved is not None:
        recorder.restore(saved["recorder"])
    live = run.live_metrics(recorder.columns(), recorder.rows)

    def on_rows(rows: list[Row]) -> None:
        live.append(rows)
        for follower in followers:
            follower.rows(rows)

    recorder.on_rows = on_rows
    for follower in followers:
        follower.reach(first_step)
        for _, rows in itertools.groupby(recorder.rows, lambda row: row["step"]):
            follower.rows(list(rows))
    with Interrupts() as interrupts:
        module = _module(plan)
        if saved is not None:
            module.load(saved["parameters"])
        module.saved_optimizer = None if saved is None else saved["optimizer"]
        keeper = _Keeper(run, recorder, plan.callbacks.checkpoint_seconds, interrupts)
        loggers = [logger for follower in followers for logger in follower.loggers()]
        _fit(plan, module, first_step, [recorder, _Told(followers), keeper], loggers)
    judged = None if judge is None else list(judge(recorder.float64_model, plan.law))
    unseen = recorder.unseen_tail()
    for sentence in unseen:
        logging.getLogger(__name__).warning("%s", sentence)
    return run.finish(
        metrics=recorder.rows,
        columns=recorder.columns(),
        weights=_arrays(plan, recorder),
        summary=_aggregate(recorder),
        steps=plan.train.steps,
        seeds=plan.seeds,
        verdicts=judged,
        extras={
            "threads": torch.get_num_threads(),
            "device": module.trained_on,
            "group": plan.group,
            "notes": unseen,
        },
    )


class _Told(pl.Callback):
    """What followers are told of."""

    def __init__(self, followers: Sequence[Follower]) -> None:
        self.followers = followers

    def on_weights(self, trainer: pl.Trainer, pl_module: EnsembleModule, step: int) -> None:
        for follower in self.followers:
            if follower.wants(step):
                follower.see(step, pl_module.look.matrices)

    def on_step_end(self, trainer: pl.Trainer, pl_module: EnsembleModule, step: int) -> None:
        for follower in self.followers:
            follower.reach(step)

    def on_train_batch_end(self, trainer: pl.Trainer, *_: object) -> None:
        # What a callback logs, loggers put at this number, which else counts batches.
        trainer.fit_loop.epoch_loop._batches_that_stepped = trainer.global_step


class _Keeper(pl.Callback):
    """Saves a checkpoint every so many seconds, and when a signal has come; then raises Interrupted."""

    def __init__(self, run: ActiveRun, recorder: Recorder, seconds: float, interrupts: Interrupts) -> None:
        self.run, self.recorder, self.seconds, self.interrupts = run, recorder, seconds, interrupts
        self.saved_at = time.monotonic()

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.interrupts.listen()

    def on_step_end(self, trainer: pl.Trainer, pl_module: EnsembleModule, step: int) -> None:
        due = time.monotonic() - self.saved_at >= self.seconds
        # At the last step the final row is still to come: there is nothing to continue from here.
        if step < pl_module.total_steps and (due or self.interrupts.signum is not None):
            self._save(pl_module, step)
            if self.interrupts.signum is not None:
                raise Interrupted(self.interrupts.signum)

    def _save(self, module: EnsembleModule, step: int) -> None:
        parameters = {k: v.detach().cpu() for k, v in module.trained.items()}
        self.run.save_checkpoint(
            {
                "step": step,
                "parameters": parameters,
                "optimizer": module.replicas.engine.state_dict(),
                "recorder": self.recorder.state(),
                "threads": torch.get_num_threads(),
            }
        )
        self.saved_at = time.monotonic()


def _module(plan: TrainingPlan) -> EnsembleModule:
    dtype = plan.trainer.dtype
    name, law, model = plan.train.estimator, plan.law, plan.model
    alone = range(len(plan.seeds)) if plan.optimizer.couples_replicas else ()
    return EnsembleModule(
        model,
        Coordinates(plan.train.maps(model, law), dtype),
        make_estimator(name, model, law).to(dtype),
        [make_estimator(name, model, law.replica(r)).to(dtype) for r in alone],
        plan.optimizer,
        plan.train.clip_for(len(plan.seeds)),
        plan.seeds,
        plan.train.steps,
    )


def _fit(
    plan: TrainingPlan,
    module: EnsembleModule,
    first_step: int,
    callbacks: Sequence[pl.Callback],
    loggers: Sequence[Logger],
) -> None:
    stream = PromptStream(
        make_estimator(plan.train.estimator, plan.model, plan.law),
        plan.seeds,
        plan.train.batch or 0,  # of nothing, where the population risk is taken
        plan.train.steps_per_batch,
        plan.train.steps,
        first_step,
        plan.trainer.dtype,
    )
    logging.getLogger("pytorch_lightning").setLevel(logging.WARNING)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="pytorch_lightning")
        trainer = pl.Trainer(
            accelerator=plan.trainer.accelerator,
            devices=1,
            precision=plan.trainer.precision,  # type: ignore[arg-type]
            max_epochs=1,
            callbacks=list(callbacks),
            logger=list(loggers),
            log_every_n_steps=1,  # of Lightning's, which are batches
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            use_distributed_sampler=False,
        )
        taken = trainer.fit_loop.epoch_loop.manual_optimization.optim_step_progress.total
        taken.ready = taken.completed = first_step  # so that `trainer.global_step` goes on counting
        trainer.fit(module, DataLoader(stream, batch_size=None))


def _arrays(plan: TrainingPlan, recorder: Recorder) -> dict[str, np.ndarray]:
    """Final matrices, their history (`A_history`, at `history_steps`), and what the law stores of itself."""
    family = recorder.float64_model.parametrization
    arrays = {name: tensor.detach().numpy() for name, tensor in family.matrices().items()}
    for name, tensors in recorder.history.items():
        if name != "steps":
            arrays[f"{name}_history"] = torch.stack(tensors, dim=1).numpy()
    arrays |= {"history_steps": np.array(recorder.history["steps"]), "seeds": np.array(plan.seeds)}
    return arrays | dict(plan.law.arrays())


def _aggregate(recorder: Recorder) -> dict[str, Any]:
    return {name: aggregate(by_seed) for name, by_seed in recorder.summary().items()}
