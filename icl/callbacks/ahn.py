"""Exact numbers by ahn's theorems of a run's weights: the risk on the set S, a column of metrics.csv; for
loggers exact levels and the least eigenvalue of the exact Hessian, which tells a minimum from a saddle
where a gradient's norm cannot."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytorch_lightning as pl
import torch
from torch import Tensor

from icl.callbacks.metrics import DistanceToSet, WeightsCallback
from icl.levels.ahn import Exact
from icl.tasks.ahn.risk_on_s import risk_on_s
from icl.tasks.law import Law
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


class Levels(WeightsCallback):
    """Levels of the risk as constant series, exact (`level/null`: at weights 0; `level/optimum`) or the least
    found (`level/saddle_k`: of layers with k = 1, 2, 3 different scalars), `excess`: the exact risk over the
    optimum, less 1, and `hessian/least`, the least over the seeds. What no theorem gives is left out. At the
    end always."""

    at_end = True
    _law: Law | None = None

    def show(self, loggers: Sequence[Any], step: int, model: Any, law: Law, seeds: Sequence[int]) -> None:
        found = self.exact(model, law).at(model)
        for logger in loggers if found else ():
            logger.log_metrics(found, step)

    def exact(self, model: Any, law: Law) -> Exact:
        """Return what is exact of models of this kind, computed for a law when it is first asked."""
        if self._law is not law:
            self._law, self._exact = law, Exact(model, law)
        return self._exact
