"""The steps of training and the numbers they leave, from validated plans to finished records.

The story: continue from the checkpoints or start, train, judge, finish. A single run is an ensemble of one.
A run's code digest starts here (icl.runs.code), so observers and records are handed in.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import logging
import signal
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytorch_lightning as pl
import torch
from pytorch_lightning.loggers import Logger
from torch.utils.data import DataLoader

from icl.callbacks.checkpoints import Checkpoints
from icl.callbacks.growth import Growth
from icl.callbacks.metrics import MetricCallback
from icl.errors import Interrupted
from icl.runs.aggregate import aggregate
from icl.training.distributed import OtherRankFailed, ProcessGroup
from icl.training.ensemble import Ensemble, EnsembleRecorder, join_checkpoints
from icl.training.estimators import make_estimator
from icl.training.interrupts import Interrupts
from icl.training.module import EnsembleModule, divergence_message
from icl.training.plan import RunPart, TrainingPlan, TrainResult
from icl.training.recorder import Recorder
from icl.training.settings import CUDA, make_trainer
from icl.training.stream import PromptStream
from icl.training.threads import matmul_precision, threads

if TYPE_CHECKING:
    from icl.runs.record import RunRecord


def train(
    parts: Sequence[RunPart],
    ensemble: Ensemble,
    checkpoints: Sequence[Mapping[str, Any]] = (),
    process_group: ProcessGroup | None = None,
) -> None:
    """Train runs that have begun, from the checkpoint of each or from the start, to their records.

    A run that fails ends with its exception; what stops all of them (Interrupted, a full disk) is raised. A
    signal in the last step is, too, once the records are written: it may be meant for what comes next.
    """
    plan, interrupts = ensemble.plan, Interrupts()
    start = join_checkpoints(checkpoints) if checkpoints else None
    first_step = int(start["step"]) if start else 0
    count = start["threads"] if start else plan.trainer.threads
    with threads(count), matmul_precision(plan.trainer.matmul_precision):
        module = build_module(plan, start, process_group)
        _build_recorders(parts, plan, checkpoints)
        columns = parts[0].recorder.columns(module)
        for part in parts:
            attach_observers(part, columns)
        recorder = EnsembleRecorder(parts, module)
        if first_step == plan.train.steps:
            recorder.finalize()
        else:
            with interrupts, _interrupted_when_another_rank_is(interrupts):
                stream = ensemble.stream(module, first_step)
                stop = Stop(interrupts, module.process_group)
                callbacks = _prepare_callbacks(plan.callbacks, recorder, stop)
                module.process_group.broadcast(training_state(module, first_step))
                fit(plan, module, stream, callbacks, _loggers(parts), parts[0].run.path)
            if len(parts) > 1:
                _save(recorder, module, plan.train.steps)  # the first record counts when all can follow
        for part in recorder.unfinished():
            try:
                record = finish(part, columns, module)
                for observer in part.observers:
                    observer.done(record)
                part.end(TrainResult(record, cached=False))
            except Exception as error:
                part.end(error)
    if interrupts.signum is not None:
        raise Interrupted(interrupts.signum)


def train_as_worker(plan: TrainingPlan, start: Mapping[str, Any], process_group: ProcessGroup) -> None:
    """Train a worker's share of a run that rank 0 keeps, from the state of rank 0."""
    precision = matmul_precision(plan.trainer.matmul_precision)
    with threads(start["threads"]), precision, Interrupts() as interrupts:
        module = build_module(plan, start, process_group)
        stream = Ensemble.of_one(plan).stream(module, start["step"])
        callbacks = [*plan.callbacks, Stop(interrupts, process_group)]
        with _interrupted_when_another_rank_is(interrupts):
            fit(plan, module, stream, callbacks, (), plan.outputs)


def _build_recorders(
    parts: Sequence[RunPart], plan: TrainingPlan, checkpoints: Sequence[Mapping[str, Any]]
) -> None:
    """Give each run its replicas and its recorder, with the rows it has so far."""
    metrics = [callback for callback in plan.callbacks if isinstance(callback, MetricCallback)]
    names = make_estimator(plan.train.estimator, plan.model, plan.law).reliability_names
    growths = [callback for callback in plan.callbacks if isinstance(callback, Growth)]
    kept_steps = {step for growth in growths for step in growth.stages(plan.train.steps)}
    stop = 0
    for part, saved in itertools.zip_longest(parts, checkpoints):
        seeds, settings = part.plan.seeds, part.plan.train
        part.replicas = slice(stop, stop := stop + len(seeds))
        part.recorder = Recorder(
            seeds, settings.steps, settings.log_every, metrics, names, kept_steps=kept_steps
        )
        if saved is not None:
            part.recorder.restore(saved["recorder"])


def attach_observers(part: RunPart, columns: Sequence[str]) -> None:
    """Replay the rows so far to the observers, and hand them those to come."""
    csv = part.run.live_metrics(columns, part.recorder.rows)
    for observer in part.observers:
        for _, rows in itertools.groupby(part.recorder.rows, lambda row: row["step"]):
            observer.rows(list(rows))
    part.recorder.row_listeners = [csv.append, *(observer.rows for observer in part.observers)]


def _loggers(parts: Sequence[RunPart]) -> list[Logger]:
    """Return the loggers for what callbacks log; in an ensemble of several runs there is none."""
    observers = parts[0].observers if len(parts) == 1 else ()
    return [logger for observer in observers for logger in observer.loggers()]


def _prepare_callbacks(
    own: Sequence[pl.Callback], recorder: EnsembleRecorder, stop: Stop
) -> list[pl.Callback]:
    """Order the callbacks: what changes the weights before the one that saves, the recorder after those that
    measure, the stop last."""
    own = sorted(own, key=lambda callback: not isinstance(callback, Growth))
    for callback in own:
        if isinstance(callback, Checkpoints):
            callback.save = functools.partial(_save, recorder)
            callback.is_stopping = stop.is_due
    return [*own, recorder, stop]


@contextlib.contextmanager
def _interrupted_when_another_rank_is(interrupts: Interrupts) -> Iterator[None]:
    """Raise Interrupted where ranks fail one another because a signal ended some of them."""
    try:
        yield
    except OtherRankFailed:
        if interrupts.signum is None:
            raise
        raise Interrupted(interrupts.signum) from None


def finish(part: RunPart, columns: Sequence[str], module: EnsembleModule) -> RunRecord:
    """Write the record of a run whose steps are taken, with its verdicts."""
    plan, recorder = part.plan, part.recorder
    if recorder.final_model is None:
        raise RuntimeError("training stopped before train.steps; only complete runs are recorded")
    diverged = recorder.diverged
    judged = None if part.judge is None or diverged else list(part.judge(recorder.final_model, plan.law))
    warnings = recorder.remarks()
    remarks = [*warnings, *([divergence_message(diverged)] if diverged else [])]
    for sentence in remarks[len(warnings) :]:  # the others are in the document, which is shown
        logging.getLogger(__name__).warning("%s", sentence)
    return part.run.finish(
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
            "warnings": warnings,
            "diverged": {str(seed): step for seed, step in diverged.items()},
        },
    )


class Stop(pl.Callback):
    """Ends a run after a signal, once the callbacks that save have saved."""

    def __init__(self, interrupts: Interrupts, process_group: ProcessGroup | None = None) -> None:
        self.interrupts, self.process_group = interrupts, process_group or ProcessGroup()
        self.process_group.stop_requested = lambda: interrupts.signum is not None

    def is_due(self) -> bool:
        return self.process_group.is_stopping()

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.interrupts.listen()

    def on_step_end(self, trainer: pl.Trainer, pl_module: EnsembleModule, step: int) -> None:
        if self.is_due() and step < pl_module.total_steps:
            raise Interrupted(self.interrupts.signum or signal.SIGTERM)  # another rank may have the signal


def _save(recorder: EnsembleRecorder, module: EnsembleModule, step: int) -> None:
    """Save a checkpoint of each run that goes on."""
    state = training_state(module, step)
    for part in recorder.unfinished():
        part.run.save_checkpoint(recorder.checkpoint_of(part, state))


def training_state(module: EnsembleModule, step: int) -> dict[str, Any]:
    """Return the state of training after `step` steps, for checkpoints and for other ranks."""
    return {
        "step": step,
        "parameters": {k: v.detach().cpu() for k, v in module.trained.items()},
        "optimizer": module.optimizer_state(),
        "threads": torch.get_num_threads(),
        "kernel": module.kernel,
    }


def build_module(
    plan: TrainingPlan, start: Mapping[str, Any] | None = None, process_group: ProcessGroup | None = None
) -> EnsembleModule:
    """Build the module of a plan with the state of training `start`, whose kernel it keeps."""
    trainer = plan.trainer
    plan.model.parametrization.initialise(plan.seeds, trainer.dtype)
    parts = plan.model, plan.law, plan.train, plan.optimizer, plan.seeds
    plain = trainer.compile is None and trainer.precision != "bf16-mixed"
    kernel = trainer.kernel if plain else "eager"
    module = EnsembleModule(*parts, trainer.dtype, trainer.compile, kernel, trainer.compile_mode)
    module.process_group = process_group or ProcessGroup()
    if start is not None:
        module.load(start["parameters"])
        module.saved_optimizer = start["optimizer"]
        module.kernel = start.get("kernel", "eager")
    return module


def fit(
    plan: TrainingPlan,
    module: EnsembleModule,
    stream: PromptStream,
    callbacks: Sequence[pl.Callback],
    loggers: Sequence[Logger],
    root: Path,
) -> None:
    """Run Lightning's loop over the stream; all ranks then have the same weights."""
    group = module.process_group
    for callback in plan.callbacks:  # the first prompts are drawn before any hook that sees the stream
        stream.lesson = getattr(callback, "lesson", stream.lesson)
    stream.pinned = plan.trainer.chosen_accelerator in CUDA
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="pytorch_lightning")
        trainer = make_trainer(plan.trainer, callbacks, loggers, root, group)
        taken = trainer.fit_loop.epoch_loop.manual_optimization.optim_step_progress.total
        taken.ready = taken.completed = stream.first_step  # so that `trainer.global_step` goes on counting
        try:
            trainer.fit(module, DataLoader(stream, batch_size=None))
        finally:
            stream.close()
    group.assert_identical_weights(list(module.trained.values()))


def _arrays(plan: TrainingPlan, history: Mapping[str, list[Any]]) -> dict[str, np.ndarray]:
    """Return the final matrices, their history (`A_history`, at `history_steps`, the end last), and the
    arrays the law stores."""
    stacks = {k: torch.stack(tensors, dim=1).numpy() for k, tensors in history.items() if k != "steps"}
    arrays = {name: stack[:, -1] for name, stack in stacks.items()}
    arrays |= {f"{name}_history": stack for name, stack in stacks.items()}
    arrays |= {"history_steps": np.array(history["steps"]), "seeds": np.array(plan.seeds)}
    return arrays | dict(plan.law.arrays())
