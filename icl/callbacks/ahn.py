"""A column of metrics.csv for the ahn paper: the risk of a run's weights on the theorems' set S."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from icl.callbacks.metrics import DistanceToSet
from icl.tasks.ahn.risk_on_s import risk_on_s
from icl.tasks.law import RiskFunction
from icl.training.module import EnsembleModule


class RiskOnS(DistanceToSet):
    """The exact risk of the weights' projection on S, `risk_on_s`, where the law is that of Theorems 3 and 4.
    In every row of the run's metrics, unless `count` or `steps` say when."""

    def __init__(self, count: int | None = None, steps: Sequence[int] | None = None) -> None:
        super().__init__(count, steps)
        self._cache: tuple[EnsembleModule, RiskFunction | None] | None = None

    def columns(self, pl_module: EnsembleModule) -> list[str]:
        return [] if self._risk(pl_module) is None else ["risk_on_s"]

    def measure(self, pl_module: EnsembleModule, step: int) -> Mapping[str, Tensor]:
        risk = self._risk(pl_module)
        with torch.no_grad():
            return {} if risk is None else {"risk_on_s": risk(pl_module.snapshot.model)}

    def _risk(self, module: EnsembleModule) -> RiskFunction | None:
        if self._cache is None or self._cache[0] is not module:
            self._cache = module, risk_on_s(module.model, module.law)
        return self._cache[1]
