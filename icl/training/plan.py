"""Plans of training runs, their observers and results."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytorch_lightning as pl
from pytorch_lightning.loggers import Logger

from icl.models import Transformer
from icl.tasks.law import Law
from icl.training.optimizers import OptimizerSpec
from icl.training.settings import TrainerSettings, TrainSettings

if TYPE_CHECKING:
    from icl.runs.record import RunRecord
    from icl.runs.store import ActiveRun
    from icl.training.recorder import Recorder

Judge = Callable[[Transformer, Law], Sequence[Mapping[str, Any]]]
Row = Mapping[str, Any]


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
    origin: Mapping[str, Any] = field(default_factory=dict, repr=False)  # of the request, for run.json


class RunObserver(Protocol):
    """Something that follows one attempt at a run, such as a logger. No number depends on it."""

    def loggers(self) -> Sequence[Logger]:
        """Return the Lightning loggers that take what callbacks log."""

    def on_weights(self, trainer: Any, pl_module: Any, step: int) -> None:
        """Handle the weights after `step` optimizer steps (see icl.training.module)."""

    def rows(self, rows: Sequence[Row]) -> None:
        """Log the rows of one step, live or of before an interruption."""

    def done(self, record: RunRecord) -> None:
        """Log the end of a run from its record."""


Observe = Callable[[int], contextlib.AbstractContextManager[Sequence[RunObserver]]]


@contextlib.contextmanager
def no_observers(attempt: int) -> Iterator[Sequence[RunObserver]]:
    yield ()


@dataclass(frozen=True)
class TrainResult:
    """A finished run and how it came about."""

    record: RunRecord
    cached: bool


@dataclass
class RunPart:
    """One run of those that train together, which may be a single one, and its outcome.

    `observe(attempt)` opens the observers of that attempt, `notify` reports a wait.
    """

    plan: TrainingPlan
    judge: Judge | None = None
    observe: Observe = no_observers
    notify: Callable[[str], None] | None = None
    outcome: TrainResult | Exception | None = None
    run: ActiveRun = field(init=False)
    observers: Sequence[RunObserver] = ()
    recorder: Recorder = field(init=False)
    replicas: slice = field(init=False)
    resources: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

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
        with contextlib.suppress(type(error)), self.resources:
            raise error

    @property
    def name(self) -> list[Any]:
        """Identity of this attempt in the checkpoints of the runs it trains with."""
        return [self.plan.fingerprint, self.run.attempt]
