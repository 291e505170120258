"""Where a run's time goes."""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.profilers import SimpleProfiler

_OURS = ("on_weights", "on_step_end")  # hooks of icl.training.module, which Lightning does not time
_DRAW, _STEP = "[_TrainingEpochLoop].train_dataloader_next", "optimizer_step"
_BATCH = "run_training_batch"


class Profile(pl.Callback):
    """Prints where the seconds of a run went to stderr: waiting for prompts, the risk and its gradient, the
    optimizer (of L-BFGS with the risks of its line search), each callback. The rows are disjoint."""

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        self._began = time.monotonic()
        self.profiler = trainer.profiler = SimpleProfiler()  # type: ignore[attr-defined]

    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        callbacks: list[Any] = trainer.callbacks  # type: ignore[attr-defined]
        for callback in callbacks:
            for hook in _OURS:
                if hasattr(callback, hook):
                    action = f"{type(callback).__name__}.{hook}"
                    setattr(callback, hook, self._timed(action, getattr(callback, hook)))

    def teardown(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        if trainer.is_global_zero:
            print("\n".join(self.table()), file=sys.stderr)

    def table(self) -> Iterator[str]:
        """Yield the lines of the table, the largest first."""
        seconds = {action: sum(each) for action, each in self.profiler.recorded_durations.items()}
        batches, step = seconds.get(_BATCH, 0.0), seconds.get(_STEP, 0.0)
        between, inside = 0.0, 0.0  # the callbacks' seconds between steps of a batch, and within a step
        callbacks: dict[str, float] = {}
        for action, spent in seconds.items():
            name, _, hook = action.removeprefix("[Callback]").partition(".")
            if hook in _OURS or action.startswith("[Callback]"):
                callbacks[name] = callbacks.get(name, 0.0) + spent
                between += spent * (hook in (*_OURS, "on_before_backward", "on_after_backward"))
                inside += spent * (hook in ("on_before_optimizer_step", "on_before_zero_grad"))
        rows = {
            "waiting for prompts": seconds.get(_DRAW, 0.0),
            "risk and gradient": batches - step - between,
            "optimizer": step - inside,
            **{f"callback {name}": spent for name, spent in callbacks.items()},
        }
        total = time.monotonic() - self._began
        rows["the rest"] = total - sum(rows.values())
        steps = len(self.profiler.recorded_durations.get(_STEP, ())) or 1
        yield f"{'profile':<34}{'seconds':>10}{'ms a step':>12}{'share':>8}"
        for name, spent in sorted(rows.items(), key=lambda row: -row[1]):
            if spent >= 0.0005 * total:
                yield f"{name:<34}{spent:>10.3f}{1e3 * spent / steps:>12.3f}{spent / total:>8.1%}"
        yield f"{'total':<34}{total:>10.3f}{1e3 * total / steps:>12.3f}{1:>8.1%}"

    def _timed(self, action: str, hook: Any) -> Any:
        @functools.wraps(hook)
        def timed(*args: Any) -> None:
            with self.profiler.profile(action):
                hook(*args)

        return timed
