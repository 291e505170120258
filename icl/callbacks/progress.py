"""Progress of a run, for the listener of its session: a bar in a terminal."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytorch_lightning as pl

from icl.errors import real
from icl.training.hooks import RunCallback


class Progress(RunCallback):
    """Tells of steps taken and the loss last recorded, at most once every `seconds`. It looks at no weights,
    so that nothing is computed for it."""

    def __init__(self, seconds: float = 0.1) -> None:
        self.seconds = real("Progress.seconds", seconds, 0)
        self.report: Callable[[float, str], None] = lambda done, text: None
        self._loss: float | None = None
        self._told_at = 0.0

    def on_train_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
        self._loss, self._told_at = None, 0.0
        self.on_step_end(trainer, pl_module, trainer.global_step)

    def on_step_end(self, trainer: pl.Trainer, pl_module: Any, step: int) -> None:
        if step == pl_module.total_steps or time.monotonic() - self._told_at > self.seconds:
            self._told_at = time.monotonic()
            loss = "" if self._loss is None else f" loss {self._loss:.4g}"
            self.report(step / pl_module.total_steps, f"step {step}/{pl_module.total_steps}{loss}")

    def on_rows(self, trainer: pl.Trainer, pl_module: Any, rows: Sequence[Mapping[str, Any]]) -> None:
        losses = [row["loss"] for row in rows if row.get("loss") is not None]
        self._loss = sum(losses) / len(losses) if losses else None
