"""Lightning's callbacks that monitor a metric, in a run: what the module logs after each set of prompts."""

from pathlib import Path
from typing import Any

import pytorch_lightning as pl

from icl.errors import one_of, whole
from icl.training.hooks import RunCallback


class EarlyStopping(RunCallback, pl.callbacks.EarlyStopping):
    """Lightning's EarlyStopping, which looks at `val_loss` after every `every` sets of prompts; the other
    settings are Lightning's. It is part of what a run is, whose record ends with the step at which it was
    stopped. No other metric is sure to be there at the first look of a run that continues."""

    role = "trains"
    alone = True

    def __init__(self, monitor: str = "val_loss", every: int = 1, **settings: Any) -> None:
        one_of("EarlyStopping.monitor", monitor, ("val_loss",))
        super().__init__(monitor, check_on_train_epoch_end=False, **settings)
        self.every = whole("EarlyStopping.every", every, 1)

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        super().setup(trainer, pl_module, stage)
        trainer.val_check_interval, trainer.limit_val_batches = self.every, 1
        trainer.num_sanity_val_steps = 0


class ModelCheckpoint(RunCallback, pl.callbacks.ModelCheckpoint):
    """Lightning's ModelCheckpoint. Its files are in the run's `checkpoints` unless `dirpath` says where."""

    role = "saves"
    alone = True

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        self.dirpath = self.dirpath or str(Path(trainer.default_root_dir) / "checkpoints")
        super().setup(trainer, pl_module, stage)
