"""The callback that keeps what a run continues from."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytorch_lightning as pl

from icl.errors import real
from icl.training.module import EnsembleModule


class Checkpoints(pl.Callback):
    """Save checkpoints that resume bit for bit, every so many seconds and when a signal ends the run.

    Without it a run that is stopped begins again. Lightning's own file is written by `checkpoint=true`.
    """

    def __init__(self, seconds: float = 10.0) -> None:
        self.seconds = real("Checkpoints.seconds", seconds, 0)
        self.save: Callable[[EnsembleModule, int], None] | None = None  # of the run in hand
        self.is_stopping: Callable[[], bool] = lambda: False
        self._saved_at = 0.0

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._saved_at = time.monotonic()

    def on_step_end(self, trainer: pl.Trainer, pl_module: EnsembleModule, step: int) -> None:
        # At the last step the final row is still to come: there is nothing to continue from here.
        if self.save is None or step == pl_module.total_steps:
            return
        if self.is_stopping() or time.monotonic() - self._saved_at >= self.seconds:
            self.save(pl_module, step)
            self._saved_at = time.monotonic()
