"""Several runs as one ensemble: each has the metrics, checkpoints and observers it has when it trains alone.

R replicas of all the runs, one run's after another's.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytorch_lightning as pl
import torch
from torch import Tensor

from icl.training.estimators import make_estimator
from icl.training.module import EnsembleModule, LawCache, WeightsSnapshot
from icl.training.plan import Row, RunPart, TrainingPlan
from icl.training.stream import PromptStream


@dataclass(frozen=True)
class Ensemble:
    """A plan of all replicas of some runs, and one of the replicas whose prompts differ: replica r reads the
    prompts of replica `prompts_of[r]` of `prompts`."""

    plan: TrainingPlan
    prompts: TrainingPlan
    prompts_of: Sequence[int]

    @classmethod
    def of_one(cls, plan: TrainingPlan) -> Ensemble:
        return cls(plan, plan, range(len(plan.seeds)))

    def stream(self, module: EnsembleModule, first_step: int) -> PromptStream:
        """Return the prompts from this step on; of several processes, this one's share."""
        if self.prompts is not self.plan:
            return _SharedPrompts(self, first_step)
        return module.prompts(first_step, (module.process_group.rank, module.process_group.size))


class _SharedPrompts(PromptStream):
    """A stream that draws once the prompts that several replicas share."""

    def __init__(self, ensemble: Ensemble, first_step: int) -> None:
        plan = ensemble.prompts
        super().__init__(
            make_estimator(plan.train.estimator, plan.model, plan.law),
            plan.seeds,
            plan.train.batch or 0,
            plan.train.steps_per_batch,
            plan.train.steps,
            first_step,
            plan.trainer.dtype,
        )
        self._prompts_of = torch.tensor(ensemble.prompts_of)

    def draw(self, set_start: int) -> dict[str, Tensor]:
        return {name: tensor[self._prompts_of] for name, tensor in super().draw(set_start).items()}


class EnsembleRecorder(pl.Callback):
    """Callback that hands each run's slice of what is measured to the run's own recorder and observers.

    A run whose recorder raises ends; the others go on. Each step's rows of all runs go to every callback that
    has `on_rows(trainer, pl_module, rows)`.
    """

    def __init__(self, parts: Sequence[RunPart], module: EnsembleModule) -> None:
        self.parts = parts
        self.views: list[Any] = [module] if len(parts) == 1 else [EnsembleSlice(module, p) for p in parts]
        first = parts[0].recorder
        self.row_steps, self._recorded_steps = first.row_steps, first.row_steps | first.history_steps
        self._measured: dict[str, Tensor] = {}

    def unfinished(self) -> list[RunPart]:
        return [part for part in self.parts if part.outcome is None]

    def add(self, measured: Mapping[str, Tensor]) -> None:
        self._measured |= measured

    def on_weights(self, trainer: pl.Trainer, pl_module: EnsembleModule, step: int) -> None:
        if step not in self._recorded_steps and not any(part.observers for part in self.parts):
            return
        measured, self._measured = self._measured, {}
        rows: list[Row] = []
        for part, view in zip(self.parts, self.views, strict=True):
            if part.outcome is not None:
                continue
            if view is not pl_module:
                view.snapshot = SliceSnapshot(pl_module.snapshot, view)
            known = len(part.recorder.rows)
            try:
                part.recorder.add({name: value_R[part.replicas] for name, value_R in measured.items()})
                part.recorder.record(view, step)
                for observer in part.observers:
                    observer.on_weights(trainer, view, step)
            except Exception as error:
                part.end(error)  # diverged, most likely
                if not self.unfinished():
                    raise
            rows += part.recorder.rows[known:]
        for callback in trainer.callbacks if rows else ():  # type: ignore[attr-defined]
            if hasattr(callback, "on_rows"):
                callback.on_rows(trainer, pl_module, rows)

    def finalize(self) -> None:
        """Finalize runs that were interrupted after their last step."""
        for part, view in zip(self.parts, self.views, strict=True):
            part.recorder.finalize_from(view)

    def checkpoint_of(self, part: RunPart, state: Mapping[str, Any]) -> dict[str, Any]:
        """Return a run's checkpoint: its share of the `state` of training, and its rows."""
        recorder = {"recorder": part.recorder.state()}
        if len(self.parts) == 1:
            return {**state, **recorder}
        return {
            **state,
            "parameters": {name: stack[part.replicas].clone() for name, stack in state["parameters"].items()},
            "optimizer": select_replicas(state["optimizer"], part.replicas),
            **recorder,
            "together": [other.name for other in self.parts],
        }


class SliceSnapshot(WeightsSnapshot):
    """The snapshot of one run in an ensemble."""

    def __init__(self, whole: WeightsSnapshot, module: EnsembleSlice) -> None:
        view: Any = module  # has what a snapshot reads of a module
        super().__init__(view, whole.step, lambda: whole.loss_R[module.own])
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

    def __init__(self, module: EnsembleModule, part: RunPart) -> None:
        self._module, self.own = module, part.replicas
        self.law, self.model, self.seeds = part.plan.law, part.plan.model, part.plan.seeds
        self.total_steps = module.total_steps
        self.snapshot: WeightsSnapshot

    def matrices(self) -> dict[str, Tensor]:
        return {name: M[self.own] for name, M in self._module.matrices().items()}


def join_checkpoints(checkpoints: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the state of training of an ensemble whose runs have these checkpoints."""
    first = checkpoints[0]
    if len(checkpoints) == 1:
        return first
    parameters = {k: torch.cat([one["parameters"][k] for one in checkpoints]) for k in first["parameters"]}
    optimizer = join_optimizer_states([one["optimizer"] for one in checkpoints])
    return {**first, "parameters": parameters, "optimizer": optimizer}


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
    """Return one state dict with all groups of several optimizers."""
    groups: list[dict[str, Any]] = []
    known: dict[int, Any] = {}
    first = 0
    for state in states:
        groups += [{**g, "params": [first + number for number in g["params"]]} for g in state["param_groups"]]
        known |= {first + number: value for number, value in state["state"].items()}
        first += sum(len(group["params"]) for group in state["param_groups"])
    return {"state": known, "param_groups": groups}
