"""Eq. (8) of Ahn et al. with diagonal preconditioners: A_l = diag(a_l), d numbers a layer instead of d^2.

R replicas, L layers, D covariates, P = D + 1 token width.
"""

import torch
from torch import Tensor

from icl.models import Parametrization
from icl.models.parametrizations import sparse_stack


class DiagonalA(Parametrization):
    sparse = True  # of the form of eq. (11) or (8): exact risks and estimators use sparse_weights
    a: Tensor  # (R, L, 1, D): a matrix for each layer, as everything that is trained

    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {"a": (self.layers, 1, self.dim)}

    def sparse_weights(self) -> tuple[Tensor, Tensor | None]:
        """(A_RLDD, B) in the sign of eq. (11); no B."""
        return -self.a * torch.eye(self.dim, dtype=self.a.dtype, device=self.a.device), None

    def stack(self) -> tuple[Tensor, Tensor]:
        """(P_RLHPP, Q_RLHPP) with one head."""
        return sparse_stack(*self.sparse_weights())
