"""A column of your own in metrics.csv: the distance of A to the best multiple of I."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from icl.callbacks import MetricCallback
from mylab.task import best_step


class DistanceToBestStep(MetricCallback):
    def measure(self, pl_module: Any, step: int) -> Mapping[str, Tensor]:
        A_RDD = -pl_module.snapshot.model.parametrization.sparse_weights()[0][:, 0].detach()
        law = pl_module.law
        best_RDD = torch.stack([best_step(law.dim, n) * torch.eye(law.dim).double() for n in law.context_R])
        return {"distance_to_best_step": (A_RDD - best_RDD).norm(dim=(-2, -1))}
