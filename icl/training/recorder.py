"""The recorder of a run. Its state is plain data, so that a checkpoint can hold it.

R replicas.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from icl.callbacks.metrics import DistanceToSet, ExactRisk, MetricCallback, Row, TaskRisks
from icl.models import Transformer
from icl.runs.steps import log_spaced_steps
from icl.training.module import Diverged, EnsembleModule, WeightsSnapshot, divergence_message

ALWAYS = ("loss", "exact_risk", "dist_preconditioned", "dist_plain")  # of every run, null where undefined


class Recorder:
    """Metrics of one run per (step, seed), with what its measures add, and weights at log-spaced steps.

    Each of `row_listeners` is called with each step's rows.
    """

    def __init__(
        self,
        seeds: Sequence[int],
        total_steps: int,
        log_every: int,
        measures: Sequence[MetricCallback],
        reliability_names: Sequence[str] = (),
        history_count: int = 40,
        kept_steps: Collection[int] = (),
    ) -> None:
        self.seeds, self.total_steps, self.measures = tuple(seeds), total_steps, tuple(measures)
        self.reliability_names = tuple(reliability_names)
        self.row_steps = {*range(0, total_steps, log_every), total_steps}
        self.row_steps |= {step for measure in measures for step in measure.chosen(total_steps)}
        self.history_steps = {0, *log_spaced_steps(total_steps, history_count), *kept_steps}
        self.row_listeners: Sequence[Callable[[list[Row]], None]] = ()
        self.rows: list[Row] = []
        self.history: dict[str, list[Any]] = {"steps": []}
        self.diverged: dict[int, int] = {}  # seeds, and the row at which their loss was no number any more
        self.final_model: Transformer | None = None  # in float64, once all steps are taken
        self._measured: dict[str, Tensor] = {}
        self._at_end: dict[str, list[float | None]] = {}

    def add(self, measured: Mapping[str, Tensor]) -> None:
        self._measured |= measured

    def record(self, module: EnsembleModule, step: int) -> None:
        """Record the snapshot of a module, or of an ensemble's slice of one run, after `step` steps."""
        snapshot = module.snapshot
        if step in self.history_steps:
            self.history["steps"].append(step)
            for name, tensor in snapshot.weights.items():
                self.history.setdefault(name, []).append(tensor.clone())
        if step in self.row_steps:
            self._write(module, step)
        if step == self.total_steps:
            self._end(module)

    def _write(self, module: EnsembleModule, step: int) -> None:
        snapshot = module.snapshot
        for seed, loss in zip(self.seeds, snapshot.loss_R.tolist(), strict=True):
            if not math.isfinite(loss):
                self.diverged.setdefault(seed, step)
        if len(self.diverged) == len(self.seeds):
            raise Diverged(divergence_message(self.diverged))
        columns = {"loss": snapshot.loss_R, "lr": snapshot.rates_R, **snapshot.reliability, **self._measured}
        self._measured = {}
        rows: list[Row] = [{"step": step, "seed": seed} for seed in self.seeds]
        for name, value_R in columns.items():
            for row, value in zip(rows, _finite_or_none(value_R), strict=True):
                row[name] = None if row["seed"] in self.diverged else value
        self.rows += rows
        for listener in self.row_listeners:
            listener(rows)

    def _end(self, module: EnsembleModule) -> None:
        """Measure the final weights, for which a record always has these numbers."""
        self.final_model = module.snapshot.model
        for kind in (DistanceToSet, ExactRisk, TaskRisks):
            if not any(isinstance(measure, kind) for measure in self.measures):
                found = kind().measure(module, self.total_steps)
                self._at_end |= {name: _finite_or_none(value_R) for name, value_R in found.items()}

    def finalize_from(self, module: EnsembleModule) -> None:
        """Finalize a run that was interrupted after its last step; `module` holds the final weights."""
        last = self.rows[-len(self.seeds) :]
        loss_R = torch.tensor([math.nan if row["loss"] is None else row["loss"] for row in last])
        module.snapshot = WeightsSnapshot(module, self.total_steps, lambda: loss_R)
        self._end(module)

    def columns(self, module: EnsembleModule) -> list[str]:
        """Every column of metrics.csv, known before the first row."""
        found = [name for measure in self.measures for name in measure.columns(module)]
        return ["step", "seed", "loss", "lr", *self.reliability_names, *found]

    def remarks(self) -> list[str]:
        last = self.rows[-len(self.seeds) :]
        return [sentence for measure in self.measures for sentence in measure.remarks(last)]

    def state(self) -> dict[str, Any]:
        return {"rows": self.rows, "history": self.history, "diverged": self.diverged}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.rows, self.history = list(state["rows"]), {k: list(v) for k, v in state["history"].items()}
        self.diverged = dict(state["diverged"])

    def summary(self, columns: Sequence[str]) -> dict[str, dict[str, float | None]]:
        """Return the last value of each metric, by seed; None where undefined."""
        measured = [name for name in columns if name not in ("step", "seed", "lr")]
        names = dict.fromkeys([*ALWAYS, *measured, *self._at_end])
        at_end = {name: dict(zip(self.seeds, values, strict=True)) for name, values in self._at_end.items()}
        last = {row["seed"]: row for row in self.rows[-len(self.seeds) :]}
        return {
            name: {
                str(s): None if s in self.diverged else last[s].get(name, at_end.get(name, {}).get(s))
                for s in self.seeds
            }
            for name in names
        }


def _finite_or_none(value_R: Tensor) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in value_R.tolist()]
