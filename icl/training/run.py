"""Training runs, found in the store or trained and kept there: one, or several as one ensemble.

The story: begin each run's record, train from its checkpoint or from the start under Lightning's Trainer,
judge, finish the record. A single run is an ensemble of one. Of several processes of a run rank 0 does this;
the others only train.
"""

import itertools
import logging
import os
import signal
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
import torch.distributed as dist
from pytorch_lightning.loggers import Logger

from icl.errors import Interrupted
from icl.runs.store import RunStore
from icl.training.ensemble import Ensemble, Recorder, one_checkpoint
from icl.training.hooks import RunCallback, Write, in_order, on_every_rank, role_of
from icl.training.module import EnsembleModule
from icl.training.plan import EnsembleMember, TrainingPlan, TrainResult
from icl.training.run_signals import Interrupts
from icl.training.threads import threads
from icl.training.trainer import make_trainer


def train_runs(
    parts: Sequence[EnsembleMember],
    ensemble_of: Callable[[Sequence[int]], Ensemble] | None = None,
    *,
    force: bool = False,
) -> list[TrainResult | Exception]:
    """Train the runs that are not done, and return each one's result or the exception that prevented it.

    `ensemble_of(chosen)` makes one ensemble of several of `parts`. Records are locked in one order
    everywhere, so that two processes never wait for each other. Interrupted leaves after the runs have saved.
    """
    try:
        for part in sorted(parts, key=lambda part: (part.plan.experiment, part.plan.fingerprint)):
            try:
                part.begin(force)
            except Exception as error:
                part.end(error)
        for step, chosen in _together(parts):
            members = [parts[i] for i in chosen]
            try:
                if ensemble_of is None or len(members) == 1:
                    ensemble = Ensemble(members[0].plan)
                else:
                    ensemble = ensemble_of(chosen)
                _train(members, ensemble, step)
            except Exception as error:
                for part in members:
                    if part.outcome is None:
                        part.end(error)
    except BaseException as error:
        for part in parts:
            if part.outcome is None:
                part.abandon(error)
        raise
    return [part.outcome for part in parts if part.outcome is not None]


def _together(parts: Sequence[EnsembleMember]) -> Iterator[tuple[int, list[int]]]:
    """Yield the runs that train together, with the step from which they do: the last that most have saved."""
    left = [i for i, part in enumerate(parts) if part.outcome is None]
    while left:
        saved = {i: [*parts[i].run.checkpoints] or [0] for i in left}
        counts = Counter(itertools.chain.from_iterable(saved.values()))
        step = max(counts, key=lambda step: (counts[step], step))
        chosen = [i for i in left if step in saved[i]]
        yield step, chosen
        left = [i for i in left if i not in chosen]


def _train(parts: Sequence[EnsembleMember], ensemble: Ensemble, step: int) -> None:
    """Train runs that have begun, from their checkpoints at `step` or from the start, to their records.

    A run that fails ends with its exception; what stops all of them (Interrupted, a full disk) is raised. A
    signal in the last step is, too, once the records are written: it may be meant for what comes next.
    """
    plan = ensemble.plan
    recorder, interrupts = Recorder(parts, plan), Interrupts(meets=plan.trainer.processes > 1)
    loggers = [logger for one in parts[0].observers if len(parts) == 1 for logger in one.loggers]
    checkpoints = [part.run.checkpoints[step] for part in parts] if step else []
    with threads(plan.trainer.threads), interrupts, one_checkpoint(checkpoints) as path:
        module = ensemble.build_module()
        module.row_steps = recorder.row_steps
        _fit(plan, module, [recorder, Stop(interrupts)], recorder.keep, parts[0].run.path, path, loggers)
        for part in recorder.unfinished():
            try:
                _finish(part, recorder, module)
            except Exception as error:
                part.end(error)
    if interrupts.signum is not None:
        raise Interrupted(interrupts.signum)


def _finish(part: EnsembleMember, recorder: Recorder, module: EnsembleModule) -> None:
    """Judge the final weights and write the record."""
    if part.history["steps"][-1] != module.total_steps:
        raise RuntimeError("training stopped before train.steps; only complete runs are recorded")
    remarks = [sentence for callback in recorder.own for sentence in callback.remarks(part.last_rows())]
    record = part.finish(remarks, {"device": module.trained_on, "kernel": module.kernel})
    for sentence in record.run["notes"][len(remarks) :]:  # remarks are in the document, which is shown
        logging.getLogger(__name__).warning("%s", sentence)
    for observer in part.observers:
        observer.done(record)
    part.end(TrainResult(record, cached=False))


def train_as_worker(plan: TrainingPlan, *, force: bool = False) -> None:
    """Train this process's share of a run whose record rank 0 keeps."""
    store = RunStore(plan.outputs)
    root = store.path(plan.experiment, plan.fingerprint)
    found = {} if force else store.checkpoints(plan.experiment, plan.fingerprint, plan.digest)
    plan = replace(plan, callbacks=on_every_rank(plan.callbacks))

    def keep(write: Write, step: int) -> None:
        write(os.devnull)  # which Lightning leaves to rank 0

    with threads(plan.trainer.threads), Interrupts(meets=True) as interrupts:
        checkpoint = found.get(max(found, default=0))
        _fit(plan, Ensemble(plan).build_module(), [Stop(interrupts)], keep, root, checkpoint)


def _fit(
    plan: TrainingPlan,
    module: EnsembleModule,
    more: Sequence[pl.Callback],
    keep: Callable[[Write, int], None],
    root: Path,
    checkpoint: Path | None,
    loggers: Sequence[Logger] = (),
) -> None:
    """Train the module with the plan's callbacks and `more`; root: where Lightning writes by default."""
    callbacks = in_order([*plan.callbacks, *more])
    for callback in callbacks:
        if role_of(callback) == "saves":
            callback.keep = keep  # type: ignore[attr-defined]
    if plan.trainer.processes > 1:  # or Lightning chooses how many threads a process has
        os.environ.setdefault("OMP_NUM_THREADS", str(torch.get_num_threads()))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="pytorch_lightning")
        trainer = make_trainer(plan.trainer, callbacks, loggers, root)
        try:
            trainer.fit(module, ckpt_path=checkpoint, weights_only=True)
        except RuntimeError as error:
            if "gloo" not in str(error) and not isinstance(error, dist.DistError):
                raise
            reason = "another process of this run failed or was ended; its own log says why"
            raise RuntimeError(reason) from error
        finally:
            if dist.is_initialized():
                dist.destroy_process_group()


class Stop(RunCallback):
    """Ends a run after a signal to any of its processes, at one step in all of them, and saves it first."""

    role = "saves"

    def __init__(self, interrupts: Interrupts) -> None:
        self.interrupts = interrupts

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        self.interrupts.listen()

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.interrupts.listen()

    def on_step_end(self, trainer: pl.Trainer, pl_module: Any, step: int) -> None:
        signum = self.interrupts.signum
        stops = trainer.strategy.reduce_boolean_decision(signum is not None, all=False)
        if not stops or step == pl_module.total_steps:  # then it is as good as done
            return
        for callback in trainer.callbacks:  # type: ignore[attr-defined]
            if hasattr(callback, "save"):
                callback.save(trainer, step)
        raise Interrupted(signum or signal.SIGTERM)  # of another process
