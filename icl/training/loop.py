"""The steps of a training run and the numbers it leaves, from a validated plan to a finished record.

The story: continue from the checkpoint or start, train, judge, finish. A run's code digest starts here
(icl.runs.code), so whoever follows it, a logger or a progress bar, and whoever keeps it is handed in.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import logging
import signal
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pytorch_lightning as pl
import torch
from pytorch_lightning.loggers import Logger
from torch.utils.data import DataLoader

from icl.callbacks.checkpoints import Checkpoints
from icl.callbacks.metrics import MetricCallback, Row
from icl.errors import Interrupted
from icl.models import Transformer
from icl.runs.aggregate import aggregate
from icl.tasks.law import Law
from icl.training.distributed import OtherRankFailed, ProcessGroup
from icl.training.estimators import make_estimator
from icl.training.interrupts import Interrupts
from icl.training.module import EnsembleModule, divergence_message
from icl.training.optimizers import OptimizerSpec
from icl.training.recorder import Recorder
from icl.training.settings import TrainerSettings, TrainSettings, make_trainer
from icl.training.stream import PromptStream
from icl.training.threads import threads

if TYPE_CHECKING:
    from icl.runs.record import RunRecord
    from icl.runs.store import ActiveRun

Judge = Callable[[Transformer, Law], Sequence[Mapping[str, Any]]]


@dataclass(frozen=True)
class TrainingPlan:
    """Everything a run needs, built and validated; nothing has been written yet."""

    experiment: str
    fingerprint: str
    group: str
    seeds: tuple[int, ...]
    law: Law
    model: Transformer
    optimizer: OptimizerSpec
    train: TrainSettings
    trainer: TrainerSettings
    callbacks: Sequence[pl.Callback]
    outputs: Path
    config: Mapping[str, Any] = field(repr=False)
    digest: str = ""
    roots: tuple[str, ...] = ()


class RunObserver(Protocol):
    """A callback (pl.Callback) of one attempt at a run, that is also told of the record, when it is done or
    where it is there already. No number depends on it."""

    def loggers(self) -> Sequence[Logger]:
        """Lightning's own, for what a callback logs."""

    def rows(self, rows: Sequence[Row]) -> None:
        """Replay the rows logged before an interruption, so that a resumed log is complete."""

    def done(self, record: RunRecord) -> None: ...

    def replay(self, record: RunRecord) -> None: ...


def train(
    plan: TrainingPlan,
    run: ActiveRun,
    observers: Sequence[RunObserver],
    judge: Judge | None,
    company: ProcessGroup | None = None,
) -> RunRecord:
    """Train `run` from its last checkpoint to its record, which this process keeps."""
    saved = run.checkpoint
    with threads(plan.trainer.threads if saved is None else saved["threads"]):
        return _train_from(saved, plan, run, observers, judge, company or ProcessGroup())


def train_as_worker(plan: TrainingPlan, start: Mapping[str, Any], company: ProcessGroup) -> None:
    """A process's share of a run that another keeps, from where that one starts."""
    with threads(start["threads"]), Interrupts() as interrupts:
        plan.model.parametrization.initialise(plan.seeds, plan.trainer.dtype)
        module = make_module(plan, start)
        module.load(start["parameters"])
        module.saved_optimizer = start["optimizer"]
        stop = Stop(interrupts, company)
        stream = module.prompts(start["step"], (company.rank, company.size))
        with _interrupted_where_asked(interrupts):
            fit(plan, module, stream, [*plan.callbacks, stop], (), plan.outputs, company)
            company.assert_identical_weights(list(module.trained.values()))


def _train_from(
    saved: dict[str, Any] | None,
    plan: TrainingPlan,
    run: ActiveRun,
    observers: Sequence[RunObserver],
    judge: Judge | None,
    company: ProcessGroup,
) -> RunRecord:
    plan.model.parametrization.initialise(plan.seeds, plan.trainer.dtype)
    module = make_module(plan, saved)
    recorder = Recorder(
        plan.seeds,
        plan.train.steps,
        plan.train.log_every,
        [callback for callback in plan.callbacks if isinstance(callback, MetricCallback)],
        make_estimator(plan.train.estimator, plan.model, plan.law).reliability_names,
    )
    if saved is not None:
        recorder.restore(saved["recorder"])
        module.load(saved["parameters"])
        module.saved_optimizer = saved["optimizer"]
    columns = recorder.columns(module)
    attach_observers(recorder, run, columns, observers)
    if saved is not None and saved["step"] == plan.train.steps:  # of an ensemble that was about to end
        recorder.finalize_from(module)
        return finish(plan, run, recorder, columns, judge, module)
    with Interrupts() as interrupts:
        stop = Stop(interrupts, company)
        for callback in plan.callbacks:
            if isinstance(callback, Checkpoints):
                callback.save = functools.partial(_save, run, recorder)
                callback.is_stopping = stop.is_due
        # The recorder comes after the measures, the stop after what saves.
        callbacks: list[Any] = [*plan.callbacks, recorder, *observers, stop]
        loggers = [logger for observer in observers for logger in observer.loggers()]
        stream = module.prompts(0 if saved is None else int(saved["step"]), (company.rank, company.size))
        with _interrupted_where_asked(interrupts):
            company.broadcast(_start(module, stream.first_step))
            fit(plan, module, stream, callbacks, loggers, run.path, company)
            company.assert_identical_weights(list(module.trained.values()))
    return finish(plan, run, recorder, columns, judge, module)


@contextlib.contextmanager
def _interrupted_where_asked(interrupts: Interrupts) -> Iterator[None]:
    """A signal that ends some of the processes at once ends the run as it does where one process has it."""
    try:
        yield
    except OtherRankFailed:
        if interrupts.signum is None:
            raise
        raise Interrupted(interrupts.signum) from None


def attach_observers(
    recorder: Recorder, run: ActiveRun, columns: Sequence[str], observers: Sequence[RunObserver]
) -> None:
    """The rows so far are told, and those to come are kept."""
    recorder.on_rows_written = run.live_metrics(columns, recorder.rows).append
    for observer in observers:
        for _, rows in itertools.groupby(recorder.rows, lambda row: row["step"]):
            observer.rows(list(rows))


def finish(
    plan: TrainingPlan,
    run: ActiveRun,
    recorder: Recorder,
    columns: Sequence[str],
    judge: Judge | None,
    module: EnsembleModule,
) -> RunRecord:
    """Write the record of a run whose steps are taken, with its verdicts."""
    if recorder.final_model is None:
        raise RuntimeError("training was stopped before train.steps; a record is of all its steps")
    diverged = recorder.diverged
    judged = None if judge is None or diverged else list(judge(recorder.final_model, plan.law))
    remarks = [*recorder.remarks(), *([divergence_message(diverged)] if diverged else [])]
    for sentence in remarks:
        logging.getLogger(__name__).warning("%s", sentence)
    return run.finish(
        metrics=recorder.rows,
        columns=columns,
        weights=_arrays(plan, recorder.history),
        summary={name: aggregate(by_seed) for name, by_seed in recorder.summary(columns).items()},
        steps=plan.train.steps,
        seeds=plan.seeds,
        verdicts=judged,
        extras={
            "threads": torch.get_num_threads(),
            "device": module.trained_on,
            "kernel": module.kernel,
            "group": plan.group,
            "notes": remarks,
            "diverged": {str(seed): step for seed, step in diverged.items()},
        },
    )


class Stop(pl.Callback):
    """Ends a run that a signal asked to end, once what saves has saved."""

    def __init__(self, interrupts: Interrupts, company: ProcessGroup | None = None) -> None:
        self.interrupts, self.company = interrupts, company or ProcessGroup()
        self.company.stop_requested = lambda: interrupts.signum is not None

    def is_due(self) -> bool:
        return self.company.is_stopping()

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.interrupts.listen()

    def on_step_end(self, trainer: pl.Trainer, pl_module: EnsembleModule, step: int) -> None:
        if self.is_due() and step < pl_module.total_steps:
            raise Interrupted(self.interrupts.signum or signal.SIGTERM)  # another process may have been told


def _save(run: ActiveRun, recorder: Recorder, module: EnsembleModule, step: int) -> None:
    run.save_checkpoint({**checkpoint_state(module, step), "recorder": recorder.state()})


def checkpoint_state(module: EnsembleModule, step: int) -> dict[str, Any]:
    """Return the state of training for a checkpoint, without recorded rows."""
    return {
        "step": step,
        "parameters": {k: v.detach().cpu() for k, v in module.trained.items()},
        "optimizer": module.replicas.engine.state_dict(),
        "threads": torch.get_num_threads(),
        "kernel": module.kernel,
    }


def _start(module: EnsembleModule, step: int) -> dict[str, Any]:
    """Return the state that other ranks start from."""
    parameters = {name: tensor.detach().cpu() for name, tensor in module.trained.items()}
    optimizer = module.saved_optimizer
    return {
        "step": step,
        "parameters": parameters,
        "optimizer": optimizer,
        "threads": torch.get_num_threads(),
        "kernel": module.kernel,
    }


def make_module(plan: TrainingPlan, saved: Mapping[str, Any] | None = None) -> EnsembleModule:
    """`saved`: of whose kernel it goes on."""
    parts = plan.model, plan.law, plan.train, plan.optimizer, plan.seeds
    trainer = plan.trainer
    plain = trainer.compile is None and trainer.precision != "bf16-mixed"
    module = EnsembleModule(*parts, trainer.dtype, trainer.compile, trainer.kernel if plain else "eager")
    if saved is not None:
        module.kernel = saved.get("kernel", "eager")
    return module


def fit(
    plan: TrainingPlan,
    module: EnsembleModule,
    stream: PromptStream,
    callbacks: Sequence[pl.Callback],
    loggers: Sequence[Logger],
    root: Path,
    company: ProcessGroup | None = None,
) -> None:
    company = module.company = company or ProcessGroup()
    for callback in plan.callbacks:  # the first prompts are drawn before any hook that sees the stream
        stream.lesson = getattr(callback, "lesson", stream.lesson)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="pytorch_lightning")
        trainer = make_trainer(plan.trainer, callbacks, loggers, root, company)
        taken = trainer.fit_loop.epoch_loop.manual_optimization.optim_step_progress.total
        taken.ready = taken.completed = stream.first_step  # so that `trainer.global_step` goes on counting
        trainer.fit(module, DataLoader(stream, batch_size=None))


def _arrays(plan: TrainingPlan, history: Mapping[str, list[Any]]) -> dict[str, np.ndarray]:
    """Final matrices, their history (`A_history`, at `history_steps`, of which the end is the last), and what
    the law stores of itself."""
    stacks = {k: torch.stack(tensors, dim=1).numpy() for k, tensors in history.items() if k != "steps"}
    arrays = {name: stack[:, -1] for name, stack in stacks.items()}
    arrays |= {f"{name}_history": stack for name, stack in stacks.items()}
    arrays |= {"history_steps": np.array(history["steps"]), "seeds": np.array(plan.seeds)}
    return arrays | dict(plan.law.arrays())
