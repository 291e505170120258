"""The callback that keeps what a run continues from."""

import time
from typing import Any

import pytorch_lightning as pl

from icl.errors import real
from icl.training.hooks import RunCallback


class Checkpoints(RunCallback):
    """Save Lightning's checkpoint of a run every `seconds` and when a signal ends the run, which then
    resumes from it bit for bit. Without this callback a run that is stopped begins again."""

    role = "saves"

    def __init__(self, seconds: float = 10.0) -> None:
        self.seconds = real("Checkpoints.seconds", seconds, 0)
        self._saved_at = 0.0

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._saved_at = time.monotonic()

    def on_step_end(self, trainer: pl.Trainer, pl_module: Any, step: int) -> None:
        # At the last step the final row is still to come: there is nothing to continue from here.
        if self.keep is None or step == pl_module.total_steps:
            return
        due = trainer.is_global_zero and time.monotonic() - self._saved_at >= self.seconds
        if trainer.strategy.reduce_boolean_decision(due, all=False):
            self.save(trainer, step)

    def save(self, trainer: pl.Trainer, step: int) -> None:
        """Save with all processes, of which rank 0 writes."""
        if self.keep is not None:
            self.keep(trainer.save_checkpoint, step)
            self._saved_at = time.monotonic()
