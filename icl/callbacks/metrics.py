"""Callbacks that measure a module at chosen optimizer steps: of a run's columns, or for a trainer's loggers.

R replicas, L layers, C chunks of prompts.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import pytorch_lightning as pl
import torch
from torch import Tensor

from icl.errors import InputError, whole
from icl.runs.steps import log_spaced_steps
from icl.text import brief
from icl.training.critical_point import CriticalPoint, GradientNorms, gradient_norms
from icl.training.module import EnsembleModule, disable_noop_hooks

SIGMAS = 4.0  # of a Student variable with CHUNKS - 1 degrees of freedom each: about 99.9 %
MOST = 1_000_000  # steps, which are listed beforehand
Row = dict[str, Any]
Matrices = Callable[[Any], Mapping[str, Tensor]]
Risk = Callable[[Any], Tensor | Iterable[Tensor]]


class StepCallback(pl.Callback, ABC):
    """Does something with the weights after each of the chosen optimizer steps, of any LightningModule.

    `count` log-spaced steps, or `steps` themselves; 0 means the weights at the start.
    """

    from_start = True  # log-spaced steps begin with the untrained weights

    def __init__(self, count: int = 8, steps: Sequence[int] | None = None) -> None:
        name = type(self).__name__
        self.count = whole(f"{name}.count", count, 0, MOST)
        self.given = None if steps is None else [whole(f"{name}.steps", step, 0) for step in steps]
        self._left: set[int] = set()

    def chosen(self, total: int) -> set[int]:
        """Return the chosen steps of a run of `total`."""
        if self.given is not None:
            return {step for step in self.given if step <= total}
        if not self.count:
            return set()
        return {*log_spaced_steps(total, self.count), *([0] if self.from_start else [])}

    @abstractmethod
    def at(self, trainer: pl.Trainer, pl_module: Any, step: int) -> None: ...

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        total = getattr(pl_module, "total_steps", trainer.estimated_stepping_batches)
        if not math.isfinite(total):
            if self.given is None:
                raise InputError(f"{type(self).__name__}.count: of how many steps is not known; give steps")
            total = max(self.given, default=0)
        self._left = self.chosen(int(total))
        vars(self).pop("on_before_optimizer_step", None)  # passed over with another module
        if isinstance(pl_module, EnsembleModule):  # whose own hook comes to every step
            disable_noop_hooks(self, StepCallback)

    def on_weights(self, trainer: pl.Trainer, pl_module: EnsembleModule, step: int) -> None:
        self._reach(trainer, pl_module, step)

    def on_before_optimizer_step(self, trainer: pl.Trainer, pl_module: pl.LightningModule, _: Any) -> None:
        self._reach(trainer, pl_module, trainer.global_step)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._reach(trainer, pl_module, trainer.global_step)

    def _reach(self, trainer: pl.Trainer, pl_module: Any, step: int) -> None:
        """Measure once, in the first hook that runs."""
        if step in self._left:
            self._left.remove(step)
            self.at(trainer, pl_module, step)


class MetricCallback(StepCallback):
    """Numbers of a module at chosen steps: columns of a run's metrics, or else for the trainer's loggers.

    A subclass says `measure(pl_module, step)`, a number for each replica by name, and, to have columns in a
    run's metrics.csv, which `columns(pl_module)` these are.
    """

    @abstractmethod
    def measure(self, pl_module: Any, step: int) -> Mapping[str, Tensor]: ...

    def columns(self, pl_module: EnsembleModule) -> list[str]:
        return []

    def remarks(self, last_rows: Sequence[Row]) -> list[str]:
        """Return remarks about the last rows, in sentences that go into the record."""
        return []

    def at(self, trainer: pl.Trainer, pl_module: Any, step: int) -> None:
        found = self.measure(pl_module, step)
        if isinstance(pl_module, EnsembleModule):
            pl_module.measured |= found
        recorders = run_recorders(trainer)
        for recorder in recorders:
            recorder.add(found)
        for logger in () if recorders else trainer.loggers:
            logger.log_metrics({name: float(value.mean()) for name, value in found.items()}, step)


class RunRows(Protocol):
    """A run's recorder, as far as measures know it."""

    row_steps: set[int]

    def add(self, found: Mapping[str, Tensor]) -> None:
        """Add numbers to the row of this step."""


class DistanceToSet(MetricCallback):
    """Observables of a run's law at the weights, such as their distances to the theorems' sets.
    In every row of the run's metrics, unless `count` or `steps` say when."""

    def __init__(self, count: int | None = None, steps: Sequence[int] | None = None) -> None:
        super().__init__(count or 0, steps)
        self.in_every_row = count is None and steps is None

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        super().on_train_start(trainer, pl_module)
        if self.in_every_row:
            self._left = {step for recorder in run_recorders(trainer) for step in recorder.row_steps}

    def columns(self, pl_module: EnsembleModule) -> list[str]:
        return list(pl_module.observables.names())

    def measure(self, pl_module: EnsembleModule, step: int) -> Mapping[str, Tensor]:
        with torch.no_grad():
            return pl_module.observables.at(pl_module.snapshot.model)


class ExactRisk(MetricCallback):
    """The exact risk of a run's weights under its law, where there is one; at the end always."""

    def chosen(self, total: int) -> set[int]:
        return {*super().chosen(total), total}

    def columns(self, pl_module: EnsembleModule) -> list[str]:
        return [] if pl_module.exact_risk is None else ["exact_risk"]

    def measure(self, pl_module: EnsembleModule, step: int) -> Mapping[str, Tensor]:
        return (
            {} if pl_module.exact_risk is None else {"exact_risk": pl_module.snapshot.exact_risk_R.detach()}
        )


class TaskRisks(MetricCallback):
    """Risks of finitely many tasks: on the tasks themselves, `risk_old`, and on those they were drawn from,
    `risk_new`, each with its standard error: zero where it is exact, else from `samples` prompts, with the
    same contexts for both. At the end always.
    """

    def __init__(self, count: int = 8, steps: Sequence[int] | None = None, samples: int = 20_000) -> None:
        super().__init__(count, steps)
        self.samples = whole("TaskRisks.samples", samples, 64, 10**8)
        self._known: tuple[EnsembleModule, Mapping[str, CriticalPoint]] | None = None

    def chosen(self, total: int) -> set[int]:
        return {*super().chosen(total), total}

    def columns(self, pl_module: EnsembleModule) -> list[str]:
        return [f"{name}{suffix}" for name in self._risks(pl_module) for suffix in ("", "_stderr")]

    def measure(self, pl_module: EnsembleModule, step: int) -> Mapping[str, Tensor]:
        found: dict[str, Tensor] = {}
        for name, of in self._risks(pl_module).items():
            found[name], found[f"{name}_stderr"] = of.risk(pl_module.snapshot.model, step)
        return found

    def _risks(self, module: EnsembleModule) -> Mapping[str, CriticalPoint]:
        if self._known is None or self._known[0] is not module:
            new = getattr(module.law, "new_tasks", None)
            laws = {} if new is None else {"risk_old": module.law, "risk_new": new}
            risks = {
                name: CriticalPoint(module.model, of, module.seeds, self.samples) for name, of in laws.items()
            }
            self._known = module, risks
        return self._known[1]


class CriticalPointGradient(MetricCallback):
    """Norm of the population risk's gradient in each matrix, with its standard error where it is sampled.

    Of a run's module as it is. Of any other given `matrices(pl_module)`, which are parameters by name, and
    `risk(pl_module)`: the population risk, or at least three independent estimates of it one after another.
    `samples` prompts make the estimates of a run's risk.
    """

    def __init__(
        self,
        count: int = 8,
        steps: Sequence[int] | None = None,
        samples: int = 20_000,
        matrices: Matrices | None = None,
        risk: Risk | None = None,
    ) -> None:
        super().__init__(count, steps)
        self.samples = whole("CriticalPointGradient.samples", samples, 64, 10**7)
        if (matrices is None) != (risk is None):
            raise InputError("CriticalPointGradient: matrices and risk must be given together")
        self.matrices, self.risk = matrices, risk
        self._known: tuple[EnsembleModule, CriticalPoint] | None = None

    def columns(self, pl_module: EnsembleModule) -> list[str]:
        if not self.chosen(pl_module.total_steps):
            return []
        names = []
        if pl_module.exact_risk is None:
            names = ["risk_estimate", "risk_estimate_stderr"]
            plain = self._critical(pl_module).estimator.plain is not None
            names += ["risk_plain_batch", "risk_plain_batch_stderr"] if plain else []
        shapes = pl_module.model.parametrization.shapes()
        labels = [f"_{name}{i}" for name, shape in shapes.items() for i in range(math.prod(shape[:-2]))]
        for label in ("", *labels):
            names += [f"gradient_norm{label}", f"gradient_norm{label}_stderr"]
        return names

    def measure(self, pl_module: Any, step: int) -> Mapping[str, Tensor]:
        norms = self._of_any(pl_module) if self.risk is not None else self._of_run(pl_module, step)
        found: dict[str, Tensor] = {}
        if not norms.exact:
            found |= {"risk_estimate": norms.risk_R, "risk_estimate_stderr": norms.risk_stderr_R}
            if norms.plain is not None:
                found |= {"risk_plain_batch": norms.plain[0], "risk_plain_batch_stderr": norms.plain[1]}
        found |= {"gradient_norm": norms.total_R, "gradient_norm_stderr": norms.total_stderr_R}
        for label in norms.norms:
            found[f"gradient_norm_{label}"] = norms.norms[label]
            found[f"gradient_norm_{label}_stderr"] = norms.stderrs[label]
        return found

    def _of_run(self, module: EnsembleModule, step: int) -> GradientNorms:
        look = module.snapshot
        exact_R = None if module.exact_risk is None else look.exact_risk_R
        return self._critical(module).measure(look.model, step, exact_R)

    def _of_any(self, module: pl.LightningModule) -> GradientNorms:
        assert self.matrices is not None and self.risk is not None
        with torch.enable_grad():
            risk, matrices = self.risk(module), self.matrices(module)
            if isinstance(risk, Tensor):
                return gradient_norms([risk], matrices, exact=True)
            return gradient_norms(risk, matrices, exact=False)

    def _critical(self, module: EnsembleModule) -> CriticalPoint:
        if self._known is None or self._known[0] is not module:
            critical = CriticalPoint(module.model, module.law, module.seeds, self.samples)
            self._known = module, critical
        return self._known[1]

    def remarks(self, last_rows: Sequence[Row]) -> list[str]:
        """Return a remark for each seed whose plain batch and weighted prompts differ by more than their
        errors."""
        tilted = self._known is not None and self._known[0].settings.estimator == "tilted"
        found, advice = [], "" if tilted else ": train.estimator=tilted"
        for row in last_rows:
            plain, risk = row.get("risk_plain_batch"), row.get("risk_estimate")
            if plain is None or risk is None:
                continue
            error = math.hypot(row["risk_plain_batch_stderr"], row["risk_estimate_stderr"])
            if abs(plain - risk) > SIGMAS * error:
                role = "dominate" if risk > 2 * plain else "make the difference"
                found.append(
                    f"seed {row['seed']}: the population risk is about {brief(risk, 2)} although a batch of "
                    f"{self.samples:,} prompts shows {brief(plain, 2)}; rare prompts {role}{advice}"
                )
        return found


def run_recorders(trainer: pl.Trainer) -> list[RunRows]:
    """Return the callbacks that keep a run's rows; a stock trainer has none."""
    callbacks: list[Any] = trainer.callbacks  # type: ignore[attr-defined]
    return [callback for callback in callbacks if hasattr(callback, "row_steps")]
