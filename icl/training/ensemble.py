"""Several runs as one ensemble: each has the metrics, checkpoints and observers it has when it trains alone.

R replicas of all the runs, one run's after another's.
"""

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch

from icl.metrics import log_spaced_steps
from icl.runs import atomic
from icl.training.hooks import Row, RunCallback, Write
from icl.training.module import EnsembleModule
from icl.training.plan import EnsembleMember, TrainingPlan

HISTORY = 40  # log-spaced steps whose weights are stored


@dataclass(frozen=True)
class Ensemble:
    """A plan of all replicas of some runs, and one of the replicas whose prompts differ: replica r reads the
    prompts of replica `prompts_of[r]` of `prompts`."""

    plan: TrainingPlan
    prompts: TrainingPlan | None = None
    prompts_of: Sequence[int] | None = None

    def build_module(self) -> EnsembleModule:
        plan, trainer, prompts = self.plan, self.plan.trainer, self.prompts
        plan.model.parametrization.initialise(plan.seeds, trainer.dtype)
        parts = plan.model, plan.law, plan.train, plan.optimizer, plan.seeds
        module = EnsembleModule(*parts, trainer.dtype, trainer.kernel)
        if prompts is not None:
            module.prompt_source = prompts.model, prompts.law, prompts.seeds
            module.prompts_of = self.prompts_of
        return module


class Recorder(RunCallback):
    """Records each run's slice of the ensemble: rows at every `log_every` steps and where callbacks measure,
    weights at log-spaced steps and where callbacks keep them. Lightning's checkpoint holds it.

    A run that cannot be recorded ends; the others go on.
    """

    role = "measures"

    def __init__(self, parts: Sequence[EnsembleMember], plan: TrainingPlan) -> None:
        self.members = parts
        self.own = [callback for callback in plan.callbacks if isinstance(callback, RunCallback)]
        total = plan.train.steps
        rows, kept = range(0, total, plan.train.log_every), log_spaced_steps(total, HISTORY)
        self.row_steps: Collection[int] = set(rows).union(*(c.measured_steps(total) for c in self.own))
        self.history_steps = {0, *kept}.union(*(c.kept_steps(total) for c in self.own))
        self._watched: set[int] = set()
        stop = 0
        for part in parts:
            part.replicas = slice(stop, stop := stop + len(part.plan.seeds))

    def unfinished(self) -> list[EnsembleMember]:
        return [part for part in self.members if part.outcome is None]

    def state_dict(self) -> dict[str, Any]:
        return {"runs": [part.state() for part in self.members]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for part, saved in zip(self.members, state["runs"], strict=True):
            part.restore(saved)

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._watched = {*self.row_steps, *self.history_steps}
        for part in self.members:
            part.replay()
            self._watched.update(*(observer.weight_steps for observer in part.observers))

    def on_weights(self, trainer: pl.Trainer, pl_module: EnsembleModule, step: int) -> None:
        is_last = step == pl_module.total_steps
        if not is_last and step not in self._watched:
            return
        snapshot, rows = pl_module.snapshot, list[Row]()
        if is_last:
            snapshot.measure_end()
        row = snapshot.row if is_last or step in self.row_steps else {}
        for part in self.unfinished():
            own = part.replicas
            try:
                if is_last or step in self.history_steps:
                    part.add_weights(step, {name: M[own] for name, M in snapshot.weights.items()})
                if row:
                    rows += part.add_row(step, {name: value_R[own] for name, value_R in row.items()})
                for observer in part.observers:
                    if step in observer.weight_steps:
                        observer.weights(step, {name: M[own] for name, M in snapshot.matrices.items()})
            except Exception as error:
                part.end(error)  # diverged, most likely
                if not self.unfinished():
                    raise
        for callback in trainer.callbacks if rows else ():  # type: ignore[attr-defined]
            if hasattr(callback, "on_rows"):
                callback.on_rows(trainer, pl_module, rows)

    def keep(self, write: Write, step: int) -> None:
        """Save a checkpoint of each run that goes on."""
        first = self.members[0].run
        if len(self.members) == 1:
            first.save_checkpoint(write, step)
            return
        whole = atomic.temporary(first.path / "checkpoint")
        try:
            write(whole)
            saved = torch.load(whole, weights_only=True)
        finally:
            whole.unlink(missing_ok=True)
        for number, part in enumerate(self.members):
            if part.outcome is None:
                share = share_of(saved, number, part.replicas)
                part.run.save_checkpoint(lambda path, share=share: torch.save(share, path), step)  # type: ignore[misc]


@contextlib.contextmanager
def one_checkpoint(checkpoints: Sequence[Path]) -> Iterator[Path | None]:
    """Yield the checkpoint to continue from; that of several runs is there for the block alone."""
    if len(checkpoints) < 2:
        yield next(iter(checkpoints), None)
        return
    path = atomic.temporary(checkpoints[0])
    try:
        torch.save(joined([torch.load(one, weights_only=True) for one in checkpoints]), path)
        yield path
    finally:
        path.unlink(missing_ok=True)


def share_of(saved: Mapping[str, Any], number: int, replicas: slice) -> dict[str, Any]:
    """Return a run's own of a Lightning checkpoint of an ensemble, of which it is run `number`."""
    return {
        **saved,
        "state_dict": {name: stack[replicas].clone() for name, stack in saved["state_dict"].items()},
        "optimizer_states": [select_replicas(state, replicas) for state in saved["optimizer_states"]],
        "callbacks": {
            key: {"runs": [state["runs"][number]]} if key == Recorder.__qualname__ else state
            for key, state in saved["callbacks"].items()
        },
    }


def joined(checkpoints: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the Lightning checkpoint of an ensemble whose runs have these."""
    first, key = checkpoints[0], Recorder.__qualname__
    states = [one["state_dict"] for one in checkpoints]
    runs = [run for one in checkpoints for run in one["callbacks"][key]["runs"]]
    return {
        **first,
        "state_dict": {name: torch.cat([state[name] for state in states]) for name in states[0]},
        "optimizer_states": [join_optimizer_states([one["optimizer_states"][0] for one in checkpoints])],
        "callbacks": {**first["callbacks"], key: {"runs": runs}},
    }


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
