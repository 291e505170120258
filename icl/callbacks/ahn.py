"""A column of metrics.csv for the ahn paper: the risk of a run's weights on the theorems' set S."""

from __future__ import annotations

from collections.abc import Mapping

import pytorch_lightning as pl
import torch
from torch import Tensor

from icl.callbacks.metrics import DistanceToSet
from icl.tasks.ahn.risk_on_s import risk_on_s
from icl.training.module import EnsembleModule


class RiskOnS(DistanceToSet):
    """The exact risk of the weights' projection on S, `risk_on_s`, where the law is that of Theorems 3 and 4.
    In every row of the run's metrics, unless `count` or `steps` say when; at the end always."""

    def on_train_start(self, trainer: pl.Trainer, pl_module: EnsembleModule) -> None:  # type: ignore[override]
        super().on_train_start(trainer, pl_module)
        self._risk = risk_on_s(pl_module.model, pl_module.law)

    def measure(self, pl_module: EnsembleModule, step: int) -> Mapping[str, Tensor]:
        with torch.no_grad():
            return {} if self._risk is None else {"risk_on_s": self._risk(pl_module.snapshot.model)}
