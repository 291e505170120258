"""The callbacks of a run: what each does to it, and the hooks of ours that it may have.

A Lightning batch is a set of prompts with many optimizer steps on it, so hooks of ours stand beside
Lightning's. Any callback that has one is called, whatever its class:

    on_weights(trainer, pl_module, step)   the weights after `step` optimizer steps, of which
                                           `pl_module.snapshot` is a copy: at 0, 1, ..., total_steps
    on_step_end(trainer, pl_module, step)  `step` optimizer steps have been taken: 1, ..., total_steps
    on_rows(trainer, pl_module, rows)      the rows of metrics of a step, one for each seed
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import pytorch_lightning as pl

if TYPE_CHECKING:
    from icl.training.trainer import RunComponents

Row = Mapping[str, Any]
Write = Callable[[Any], None]  # of a checkpoint, to a path
Role = Literal["trains", "measures", "watches", "saves"]
ORDER: tuple[Role, ...] = ("trains", "measures", "watches", "saves")  # in which they act on a step


class RunCallback(pl.Callback):
    """A callback with a role in a run.

    `trains`: it changes weights or prompts. It is part of the run's fingerprint, and every process of a run
    has it. `measures`: columns of metrics.csv. `watches`: whatever leaves no trace in the record. `saves`:
    checkpoints, which Lightning writes with all processes. Measures and watchers are of rank 0 alone; a
    pl.Callback without a role is of every process, as everywhere in Lightning.
    """

    role: ClassVar[Role] = "watches"
    alone: ClassVar[bool] = False  # it depends on all replicas, so no other run trains together with its
    keep: Callable[[Write, int], None] | None = None  # of one that saves: gives `write` the path of a step's
    # Lightning passes over a hook that is no function; to call one that does nothing takes microseconds.
    on_before_backward: Any = None
    on_after_backward: Any = None
    on_before_optimizer_step: Any = None

    def validate_run(self, run: RunComponents, replicas: int) -> None:
        """Refuse a run that the callback cannot be part of."""

    def stage_law(self, step: int, law: Any) -> Any:
        """Return the law of the prompts drawn at `step`."""
        return law

    def kept_steps(self, total: int) -> Collection[int]:
        """Return the steps whose weights belong in the history of a run of `total`."""
        return ()

    def measured_steps(self, total: int) -> Collection[int]:
        """Return the steps that have a row of metrics for what the callback measures then."""
        return ()

    def remarks(self, last_rows: Sequence[Row]) -> Sequence[str]:
        """Return remarks about the last rows, in sentences that go into the record."""
        return ()


def role_of(callback: object) -> Role | None:
    return getattr(callback, "role", None)


def in_order(callbacks: Iterable[pl.Callback]) -> list[pl.Callback]:
    """Sort callbacks by role, and those of one role as they are given."""
    return sorted(callbacks, key=lambda callback: ORDER.index(role_of(callback) or "watches"))


def on_every_rank(callbacks: Iterable[pl.Callback]) -> list[pl.Callback]:
    """Return those callbacks that each process of a run has."""
    return [callback for callback in callbacks if role_of(callback) in ("trains", "saves", None)]
