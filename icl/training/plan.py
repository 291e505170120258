"""Plans of training runs, and the runs that are made of them.

R replicas.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from icl.metrics import aggregate
from icl.models import Transformer
from icl.runs.lock import notify
from icl.runs.store import RunStore
from icl.tasks.law import Law
from icl.training.module import Diverged, divergence_message, model_in_float64
from icl.training.trainer import RunComponents

if TYPE_CHECKING:
    from icl.runs.record import RunRecord
    from icl.runs.store import ActiveRun

Judge = Callable[[Transformer, Law], Sequence[Mapping[str, Any]]]
ALWAYS = ("loss", "exact_risk", "dist_preconditioned", "dist_plain")  # of every run, null where undefined


@dataclass(frozen=True, kw_only=True)
class TrainingPlan(RunComponents):
    """Everything a run needs, built and validated; nothing has been written yet."""

    experiment: str
    fingerprint: str
    group: str
    seeds: tuple[int, ...]
    outputs: Path
    config: Mapping[str, Any] = field(repr=False)
    digest: str = ""
    roots: tuple[str, ...] = ()
    origin: Mapping[str, Any] = field(default_factory=dict, repr=False)  # of the request, for run.json


@dataclass(frozen=True)
class TrainResult:
    """A finished run and how it came about."""

    record: RunRecord
    cached: bool


@dataclass
class EnsembleMember:
    """One run of those that train together, which may be a single one: what it has recorded, and its outcome.

    `observe(attempt)` opens the observers of that attempt, icl.callbacks.RunLogger; `notify` reports a wait.
    """

    plan: TrainingPlan
    judge: Judge | None = None
    observe: Callable[[int], AbstractContextManager[Sequence[Any]]] = lambda attempt: nullcontext(())
    notify: Callable[[str], None] | None = None
    outcome: TrainResult | Exception | None = None
    run: ActiveRun = field(init=False)
    observers: Sequence[Any] = ()
    replicas: slice = field(init=False)  # of the ensemble's
    resources: ExitStack = field(default_factory=ExitStack)
    rows: list[dict[str, Any]] = field(default_factory=list)
    history: dict[str, list[Any]] = field(default_factory=lambda: {"steps": []})  # weights, by name
    diverged: dict[int, int] = field(default_factory=dict)  # seeds, and the step of the row that shows it

    def begin(self, force: bool) -> None:
        """Lock the run's record and open its observers, or end with the record another process made."""
        plan = self.plan
        identity = (plan.experiment, plan.fingerprint, plan.config, plan.digest, plan.roots)
        begun = RunStore(plan.outputs).begin(
            *identity, origin=plan.origin, force=force, notify=self.notify or notify
        )
        self.run = self.resources.enter_context(begun)
        if self.run.cached is not None:
            self.end(TrainResult(self.run.cached, cached=True))
        else:
            self.observers = self.resources.enter_context(self.observe(self.run.attempt))

    def state(self) -> dict[str, Any]:
        """Return what is recorded, in plain data, for a checkpoint."""
        recorded = {"rows": self.rows, "history": self.history, "diverged": self.diverged}
        return {**recorded, "seconds": self.run.seconds}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.rows, self.history = list(state["rows"]), {k: list(v) for k, v in state["history"].items()}
        self.diverged = dict(state["diverged"])
        self.run.seconds_before = max(self.run.seconds_before, state["seconds"])

    def replay(self) -> None:
        """Show the observers the rows of before an interruption again."""
        for _, rows in itertools.groupby(self.rows, lambda row: row["step"]):
            shown = list(rows)
            for observer in self.observers:
                observer.rows(shown)

    def add_weights(self, step: int, weights: Mapping[str, Tensor]) -> None:
        self.history["steps"].append(step)
        for name, stack in weights.items():
            self.history.setdefault(name, []).append(stack.clone())

    def add_row(self, step: int, columns: Mapping[str, Tensor]) -> list[dict[str, Any]]:
        """Record a row for each seed; raise Diverged if no seed has a finite loss any more."""
        seeds = self.plan.seeds
        for seed, loss in zip(seeds, columns["loss"].tolist(), strict=True):
            if not math.isfinite(loss):
                self.diverged.setdefault(seed, step)
        if len(self.diverged) == len(seeds):
            raise Diverged(divergence_message(self.diverged))
        rows: list[dict[str, Any]] = [{"step": step, "seed": seed} for seed in seeds]
        for name, value_R in columns.items():
            for row, value in zip(rows, value_R.tolist(), strict=True):
                row[name] = value if math.isfinite(value) and row["seed"] not in self.diverged else None
        self.rows += rows
        for observer in self.observers:
            observer.rows(rows)
        return rows

    def last_rows(self) -> list[dict[str, Any]]:
        return self.rows[-len(self.plan.seeds) :]

    def finish(self, remarks: Sequence[str], extras: Mapping[str, Any]) -> RunRecord:
        """Write the record of a run whose steps are taken, with its verdicts."""
        plan, rows = self.plan, self.last_rows()
        columns = list(dict.fromkeys(name for row in self.rows for name in row))
        if (steps := rows[0]["step"]) < plan.train.steps:
            remarks = [*remarks, f"stopped early, after {steps} of {plan.train.steps} steps"]
        stacks = {k: torch.stack(tensors, dim=1) for k, tensors in self.history.items() if k != "steps"}
        final = {name: stack[:, -1] for name, stack in stacks.items()}
        arrays = {name: M.numpy() for name, M in final.items()}
        arrays |= {f"{name}_history": stack.numpy() for name, stack in stacks.items()}
        arrays |= {"history_steps": np.array(self.history["steps"]), "seeds": np.array(plan.seeds)}
        judged = None
        if self.judge is not None and not self.diverged:
            judged = list(self.judge(model_in_float64(plan.model, final), plan.law))
        names = dict.fromkeys([*ALWAYS, *columns])
        summary = {
            name: aggregate({str(row["seed"]): row.get(name) for row in rows})
            for name in names
            if name not in ("step", "seed", "lr")
        }
        return self.run.finish(
            metrics=self.rows,
            columns=columns,
            weights=arrays | dict(plan.law.arrays()),
            summary=summary,
            steps=steps,
            seeds=plan.seeds,
            verdicts=judged,
            extras={
                **extras,
                "threads": torch.get_num_threads(),
                "group": plan.group,
                "notes": [*remarks, *([divergence_message(self.diverged)] if self.diverged else [])],
                "warnings": list(remarks),
                "diverged": {str(seed): step for seed, step in self.diverged.items()},
            },
        )

    def end(self, outcome: TrainResult | Exception) -> None:
        """Set the outcome, and close the record and the observers. What closing raises counts instead: it
        names the folder whose disk is full."""
        self.outcome = outcome
        if isinstance(outcome, Exception):
            try:
                self.abandon(outcome)
            except Exception as error:
                self.outcome = error
        else:
            self.resources.close()

    def abandon(self, error: BaseException) -> None:
        """Close the record as failed or interrupted, and the observers."""
        with suppress(type(error)), self.resources:
            raise error
