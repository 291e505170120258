"""Several runs trained as one ensemble. Each has its own record, checkpoint and followers, and the numbers it
has when it is trained alone; one that fails ends alone.

R replicas of all the runs, one run's after another's.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytorch_lightning as pl
import torch
from torch import Tensor

from icl.callbacks.checkpoints import Checkpoints
from icl.callbacks.metrics import MetricCallback, Row
from icl.runs.store import ActiveRun, RunStore
from icl.training import loop
from icl.training.estimators import make_estimator
from icl.training.interrupts import Interrupts
from icl.training.loop import Judge, RunObserver, TrainingPlan
from icl.training.module import EnsembleModule, LawCache, WeightsSnapshot
from icl.training.recorder import Recorder
from icl.training.run import TrainResult
from icl.training.stream import PromptStream
from icl.training.threads import threads

Observe = Callable[[int], contextlib.AbstractContextManager[Sequence[RunObserver]]]
Outcome = TrainResult | Exception


@dataclass
class EnsembleMember:
    """One of the runs: its plan, who judges and follows it, and what becomes of it."""

    plan: TrainingPlan
    judge: Judge | None
    follow: Observe
    say: Callable[[str], None]
    outcome: Outcome | None = None
    run: ActiveRun = field(init=False)
    observers: Sequence[RunObserver] = ()
    recorder: Recorder = field(init=False)
    replicas: slice = field(init=False)
    _open: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def begin(self, force: bool) -> None:
        """Takes its record, or finds it made meanwhile."""
        plan = self.plan
        identity = (plan.experiment, plan.fingerprint, plan.config, plan.digest, plan.roots)
        store = RunStore(plan.outputs)
        self.run = self._open.enter_context(store.begin(*identity, force=force, say=self.say))
        if self.run.cached is None:
            self.observers = self._open.enter_context(self.follow(self.run.attempt))
            return
        with self.follow(self.run.cached.run["attempt"]) as observers:
            for observer in observers:
                observer.replay(self.run.cached)
        self.end(TrainResult(self.run.cached, cached=True))

    def end(self, outcome: Outcome) -> None:
        self.outcome = outcome
        if isinstance(outcome, Exception):
            self.leave(outcome)
        else:
            self._open.close()

    def leave(self, error: BaseException) -> None:
        """Its record says what went wrong, or that it was interrupted."""
        with contextlib.suppress(type(error)), self._open:
            raise error

    @property
    def name(self) -> list[Any]:
        """Identity of this attempt in the checkpoints of the runs it trains with."""
        return [self.plan.fingerprint, self.run.attempt]

    def common_checkpoints(self, together: Any) -> dict[int, dict[str, Any]]:
        """Its checkpoints as one of these, by step."""
        states = [self.run.checkpoint, *self.run.earlier]
        return {s["step"]: s for s in states if s is not None and s.get("together") == together}


@dataclass
class ResumableGroup:
    """Runs that train together from here on, and their checkpoints; none: from the beginning."""

    parts: list[int]
    saved: list[dict[str, Any]] = field(default_factory=list)


def resumable_groups(parts: Sequence[EnsembleMember], left: Sequence[int]) -> list[ResumableGroup]:
    """Runs that were stopped go on with those they were trained with, from the last step that all of them
    have saved: so the numbers are, to the bit, those of an ensemble that was never stopped."""
    found: list[ResumableGroup] = []
    waiting = list(left)
    while waiting:
        saved = next((c for i in waiting if (c := parts[i].run.checkpoint) is not None), None)
        if saved is None:
            found.append(ResumableGroup(waiting))
            break
        together = saved.get("together")
        if together is None:  # was trained alone: with those that stand where it does
            step = _stands_at(saved)
            same = [i for i in waiting if _alone_at(parts[i]) == step]
            found.append(ResumableGroup(same, [parts[i].run.checkpoint or {} for i in same]))
        else:
            names = {tuple(name) for name in together}
            same = [i for i in waiting if tuple(parts[i].name) in names]
            known = [parts[i].common_checkpoints(together) for i in same]
            common = set(known[0]).intersection(*known)
            found.append(ResumableGroup(same, [states[max(common)] for states in known] if common else []))
        waiting = [i for i in waiting if i not in found[-1].parts]
    return found


def _alone_at(part: EnsembleMember) -> tuple[int, int, str] | None:
    saved = part.run.checkpoint
    return None if saved is None or "together" in saved else _stands_at(saved)


def _stands_at(saved: Mapping[str, Any]) -> tuple[int, int, str]:
    return saved["step"], saved["threads"], saved.get("kernel", "eager")


@dataclass(frozen=True)
class Ensemble:
    """Plans of runs, and one plan of all their replicas. `drawn` has their laws without those that are the
    same and share a seed, whose prompts are the same: replica r's are those of its replica `whose[r]`."""

    whole: TrainingPlan
    drawn: TrainingPlan
    whose: Sequence[int]


def train_ensemble(
    parts: Sequence[EnsembleMember], ensemble_of: Callable[[Sequence[int]], Ensemble], *, force: bool = False
) -> list[Outcome]:
    """Trains what is not done. `ensemble_of(chosen)` are those of `parts` as one.

    Records are taken in one order everywhere, so that two processes never wait for each other's.
    """
    try:
        for part in sorted(parts, key=lambda part: (part.plan.experiment, part.plan.fingerprint)):
            try:
                part.begin(force)
            except Exception as error:
                part.end(error)
        left = [i for i, part in enumerate(parts) if part.outcome is None]
        for start in resumable_groups(parts, left):
            _train([parts[i] for i in start.parts], ensemble_of(start.parts), start.saved)
    except BaseException as error:
        for part in parts:
            if part.outcome is None:
                part.end(error) if isinstance(error, Exception) else part.leave(error)
        if not isinstance(error, Exception):
            raise
    return [part.outcome for part in parts if part.outcome is not None]


def _train(parts: Sequence[EnsembleMember], ensemble: Ensemble, saved: Sequence[Mapping[str, Any]]) -> None:
    with threads(saved[0]["threads"] if saved else ensemble.whole.trainer.threads):
        _train_from(saved, parts, ensemble)


def _train_from(
    saved: Sequence[Mapping[str, Any]], parts: Sequence[EnsembleMember], ensemble: Ensemble
) -> None:
    plan = ensemble.whole
    plan.model.parametrization.initialise(plan.seeds, plan.trainer.dtype)
    module = loop.make_module(plan, saved[0] if saved else None)
    measures = [callback for callback in plan.callbacks if isinstance(callback, MetricCallback)]
    names = make_estimator(plan.train.estimator, plan.model, plan.law).reliability_names
    stop = 0
    for part in parts:
        own = part.plan
        part.replicas = slice(stop, stop := stop + len(own.seeds))
        part.recorder = Recorder(own.seeds, own.train.steps, own.train.log_every, measures, names)
    if saved:
        module.load({k: torch.cat([one["parameters"][k] for one in saved]) for k in saved[0]["parameters"]})
        module.saved_optimizer = join_optimizer_states([one["optimizer"] for one in saved])
        for part, one in zip(parts, saved, strict=True):
            part.recorder.restore(one["recorder"])
    columns = parts[0].recorder.columns(module)
    for part in parts:
        loop.attach_observers(part.recorder, part.run, columns, part.observers)
    record_all = _EnsembleRecorder(parts, module)
    first_step = saved[0]["step"] if saved else 0
    if first_step < plan.train.steps:
        _fit(plan, module, _SharedPrompts(ensemble, first_step), record_all)
        _save(record_all, module, plan.train.steps)  # the first record counts when all of them can follow
    else:
        for part, seen in zip(parts, record_all.seen, strict=True):
            part.recorder.finalize_from(seen)
    for part in record_all.unfinished():
        try:
            part.end(_finished(part, columns, module))
        except Exception as error:
            part.end(error)


def _fit(
    plan: TrainingPlan, module: EnsembleModule, stream: PromptStream, record_all: _EnsembleRecorder
) -> None:
    with Interrupts() as interrupts:
        last = loop.Stop(interrupts)
        for callback in plan.callbacks:
            if isinstance(callback, Checkpoints):
                callback.save = functools.partial(_save, record_all)
                callback.is_stopping = last.is_due
        callbacks = [*plan.callbacks, record_all, last]
        loop.fit(plan, module, stream, callbacks, (), record_all.parts[0].run.path)


def _finished(part: EnsembleMember, columns: Sequence[str], module: EnsembleModule) -> TrainResult:
    record = loop.finish(part.plan, part.run, part.recorder, columns, part.judge, module)
    for observer in part.observers:
        observer.done(record)
    return TrainResult(record, cached=False)


class _EnsembleRecorder(pl.Callback):
    """Recorder of an ensemble: what was measured of it goes to the recorder of each run that goes on."""

    def __init__(self, parts: Sequence[EnsembleMember], module: EnsembleModule) -> None:
        self.parts = parts
        self.seen: list[Any] = [EnsembleSlice(module, part) for part in parts]
        self.row_steps = parts[0].recorder.row_steps
        self._found: dict[str, Tensor] = {}

    def unfinished(self) -> list[EnsembleMember]:
        return [part for part in self.parts if part.outcome is None]

    def add(self, found: Mapping[str, Tensor]) -> None:
        self._found |= found

    def on_weights(self, trainer: pl.Trainer, pl_module: EnsembleModule, step: int) -> None:
        found, self._found = self._found, {}
        rows: list[Row] = []
        for part, seen in zip(self.parts, self.seen, strict=True):
            if part.outcome is not None:
                continue
            part.recorder.add({name: value_R[part.replicas] for name, value_R in found.items()})
            seen.snapshot = SliceSnapshot(pl_module.snapshot, seen)
            audience: Any = SliceTrainer(part.observers)
            known = len(part.recorder.rows)
            try:
                for callback in (part.recorder, *part.observers):
                    if hasattr(callback, "on_weights"):
                        callback.on_weights(audience, seen, step)
            except Exception as error:
                part.end(error)  # diverged, most likely: the others do not notice
            rows += part.recorder.rows[known:]
        for callback in trainer.callbacks if rows else ():  # type: ignore[attr-defined]
            if hasattr(callback, "on_rows"):
                callback.on_rows(trainer, pl_module, rows)
        trainer.should_stop = not self.unfinished()


@dataclass(frozen=True)
class SliceTrainer:
    """Stands for a trainer with the callbacks of one run in the ensemble."""

    callbacks: Sequence[Any]


class SliceSnapshot(WeightsSnapshot):
    """The snapshot of one run in an ensemble."""

    def __init__(self, whole: WeightsSnapshot, module: EnsembleSlice) -> None:
        seen: Any = module  # all that a look asks of a module
        super().__init__(seen, whole.step, lambda: whole.loss_R[module.own])
        self._whole, self._own = whole, module.own

    @functools.cached_property
    def weights(self) -> dict[str, Tensor]:
        return {name: M[self._own] for name, M in self._whole.weights.items()}

    @property
    def rates_R(self) -> Tensor:
        return self._whole.rates_R[self._own]

    @property
    def reliability(self) -> Mapping[str, Tensor]:
        return {name: value_R[self._own] for name, value_R in self._whole.reliability.items()}


class EnsembleSlice(LawCache):
    """The slice of an ensemble's module that belongs to one run."""

    def __init__(self, module: EnsembleModule, part: EnsembleMember) -> None:
        self._module, self.own = module, part.replicas
        self.law, self.model, self.seeds = part.plan.law, part.plan.model, part.plan.seeds
        self.total_steps = module.total_steps
        self.snapshot: WeightsSnapshot

    def matrices(self) -> dict[str, Tensor]:
        return {name: M[self.own] for name, M in self._module.matrices().items()}


class _SharedPrompts(PromptStream):
    """Prompts that several replicas have in common are drawn once."""

    def __init__(self, ensemble: Ensemble, first_step: int) -> None:
        plan = ensemble.drawn
        super().__init__(
            make_estimator(plan.train.estimator, plan.model, plan.law),
            plan.seeds,
            plan.train.batch or 0,
            plan.train.steps_per_batch,
            plan.train.steps,
            first_step,
            plan.trainer.dtype,
        )
        self.whose = torch.tensor(ensemble.whose)

    def draw(self, set_start: int) -> dict[str, Tensor]:
        return {name: tensor[self.whose] for name, tensor in super().draw(set_start).items()}


def _save(record_all: _EnsembleRecorder, module: EnsembleModule, step: int) -> None:
    whole = loop.checkpoint_state(module, step)
    for part in record_all.unfinished():
        own = {
            "parameters": {name: stack[part.replicas].clone() for name, stack in whole["parameters"].items()},
            "optimizer": select_replicas(whole["optimizer"], part.replicas),
            "recorder": part.recorder.state(),
            "together": [other.name for other in record_all.parts],
        }
        part.run.save_checkpoint(whole | own)


def select_replicas(state: Mapping[str, Any], replicas: slice) -> dict[str, Any]:
    """Return the part of an optimizer's state dict that belongs to these replicas."""
    groups: list[dict[str, Any]] = []
    numbers: list[int] = []
    for group in state["param_groups"][replicas]:
        own = range(len(numbers), len(numbers) + len(group["params"]))
        groups.append({**group, "params": list(own)})
        numbers += group["params"]
    known = {new: state["state"][old] for new, old in enumerate(numbers) if old in state["state"]}
    return {"state": known, "param_groups": groups}


def join_optimizer_states(states: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """State dicts of several optimizers as that of one with all their groups."""
    groups: list[dict[str, Any]] = []
    known: dict[int, Any] = {}
    first = 0
    for state in states:
        groups += [{**g, "params": [first + number for number in g["params"]]} for g in state["param_groups"]]
        known |= {first + number: value for number, value in state["state"].items()}
        first += sum(len(group["params"]) for group in state["param_groups"])
    return {"state": known, "param_groups": groups}
