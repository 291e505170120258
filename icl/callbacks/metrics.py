"""Callbacks that measure the weights at chosen optimizer steps: columns of a run's metrics.csv, or numbers
for the loggers of a Trainer.

R replicas.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pytorch_lightning as pl
import torch
from torch import Tensor

from icl.errors import whole
from icl.metrics import log_spaced_steps
from icl.tasks.law import Law
from icl.training.hooks import RunCallback
from icl.training.module import EnsembleModule

MOST = 1_000_000  # steps, which are listed beforehand


class StepCallback(RunCallback, ABC):
    """Does something with the weights after each of the chosen optimizer steps.

    `count` log-spaced steps, or `steps` themselves, of which 0 is the start.
    """

    from_start = True  # log-spaced steps begin with the untrained weights
    at_end = False  # whatever the chosen steps

    def __init__(self, count: int = 8, steps: Sequence[int] | None = None) -> None:
        name = type(self).__name__
        self.count = whole(f"{name}.count", count, 0, MOST)
        self.steps = None if steps is None else {whole(f"{name}.steps", step, 0) for step in steps}
        self._chosen: Collection[int] = ()

    def steps_for(self, total: int) -> set[int]:
        """Return the chosen steps of a run of `total`."""
        if self.steps is not None:
            return {step for step in self.steps if step <= total}
        if not self.count:
            return set()
        return {*log_spaced_steps(total, self.count), *([0] if self.from_start else [])}

    @abstractmethod
    def on_chosen_step(self, trainer: pl.Trainer, pl_module: EnsembleModule, step: int) -> None: ...

    def on_train_start(self, trainer: pl.Trainer, pl_module: EnsembleModule) -> None:  # type: ignore[override]
        self._chosen = self.steps_for(pl_module.total_steps)

    def on_weights(self, trainer: pl.Trainer, pl_module: EnsembleModule, step: int) -> None:
        if step in self._chosen or (self.at_end and step == pl_module.total_steps):
            self.on_chosen_step(trainer, pl_module, step)


class WeightsCallback(StepCallback):
    """Shows loggers something of the weights at chosen steps; a run shows its own loggers its own seeds."""

    @abstractmethod
    def show(self, loggers: Sequence[Any], step: int, model: Any, law: Law, seeds: Sequence[int]) -> None: ...

    def exact(self, model: Any, law: Law) -> Any:
        """Return what is exact of such models (icl.levels), for tables of curves and layers; else None."""
        return None

    def on_chosen_step(self, trainer: pl.Trainer, pl_module: EnsembleModule, step: int) -> None:
        if not pl_module.row_steps:
            module = pl_module
            self.show(trainer.loggers, step, module.snapshot.model, module.law, module.seeds)


class MetricCallback(StepCallback):
    """Numbers of each replica at chosen steps, as `measure(pl_module, step)` returns them by name.

    `pl_module.snapshot` has the weights, the model with them in float64, and its exact risk.
    """

    role = "measures"

    @abstractmethod
    def measure(self, pl_module: EnsembleModule, step: int) -> Mapping[str, Tensor]: ...

    def measured_steps(self, total: int) -> Collection[int]:
        return self.steps_for(total)

    def on_chosen_step(self, trainer: pl.Trainer, pl_module: EnsembleModule, step: int) -> None:
        found = self.measure(pl_module, step)
        pl_module.snapshot.measured |= found
        for logger in () if pl_module.row_steps else trainer.loggers:  # else the rows are logged
            logger.log_metrics({name: float(value_R.mean()) for name, value_R in found.items()}, step)


class DistanceToSet(MetricCallback):
    """Observables of a run's law at the weights, such as their distances to the theorems' sets.
    In every row of the run's metrics, unless `count` or `steps` say when; at the end always."""

    at_end = True

    def __init__(self, count: int | None = None, steps: Sequence[int] | None = None) -> None:
        super().__init__(count or 0, steps)
        self.in_every_row = count is None and steps is None

    def on_train_start(self, trainer: pl.Trainer, pl_module: EnsembleModule) -> None:  # type: ignore[override]
        super().on_train_start(trainer, pl_module)
        if self.in_every_row:
            self._chosen = pl_module.row_steps

    def measure(self, pl_module: EnsembleModule, step: int) -> Mapping[str, Tensor]:
        with torch.no_grad():
            return pl_module.observables.at(pl_module.snapshot.model)


class ExactRisk(MetricCallback):
    """The exact risk of a run's weights under its law, if that is known; at the end always."""

    at_end = True

    def measure(self, pl_module: EnsembleModule, step: int) -> Mapping[str, Tensor]:
        if pl_module.exact_risk is None:
            return {}
        return {"exact_risk": pl_module.snapshot.exact_risk_R.detach()}
