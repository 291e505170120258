"""Linear regression on signs: x uniform on {-1, 1}^d, w ~ N(0, I), y = <w, x>.

R replicas, B prompts, N context tokens, D covariates, P = D + 1 token width.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from icl.errors import whole
from icl.tasks import TokenLaw, TokenPrompt
from icl.tasks.law import RiskFunction


class Signs:
    """The class that a config names; its settings are the arguments of the constructor."""

    def __init__(self, dim: int = 5, context: int = 20) -> None:
        self.dim, self.context = whole("task.dim", dim, 1), whole("task.context", context, 1)

    def law(self, seeds: Sequence[int]) -> "SignsLaw":
        return SignsLaw(self.dim, (self.context,) * len(seeds))


@dataclass(frozen=True)
class SignsLaw(TokenLaw):
    dim: int
    context_R: tuple[int, ...]

    def replica(self, r: int) -> "SignsLaw":
        return SignsLaw(self.dim, self.context_R[r : r + 1])

    def token_prompts(self, generators: Sequence[np.random.Generator], batch: int) -> TokenPrompt:
        shape = (batch, self.context_R[0] + 1, self.dim)
        x_RBND = torch.from_numpy(np.stack([2.0 * rng.integers(0, 2, shape) - 1 for rng in generators]))
        w_RBD = torch.from_numpy(np.stack([rng.standard_normal((batch, self.dim)) for rng in generators]))
        y_RBN = torch.einsum("rbnd,rbd->rbn", x_RBND, w_RBD)
        given = self.encode(x_RBND[:, :, :-1], y_RBN[:, :, :-1], x_RBND[:, :, -1])
        return TokenPrompt(given.context_RBNP, given.query_RBP, y_RBN[..., -1], self.read_out)

    def exact_risk(self, model: Any) -> RiskFunction | None:
        """Return that of one layer of eq. (8). |x|^2 = D, so E G^2 = (N - 1 + D)/N I for a Gram matrix G."""
        family = model.parametrization
        if not family.sparse or family.with_b or family.layers != 1 or model.activation != "identity":
            return None
        spread_R = torch.tensor([(n - 1 + self.dim) / n for n in self.context_R], dtype=torch.float64)

        def risk(model: Any) -> Tensor:
            A_RDD = -model.parametrization.sparse_weights()[0][:, 0].double()  # eq. (8) has the sign of (11)
            trace_R = A_RDD.diagonal(dim1=-2, dim2=-1).sum(-1)
            return self.dim - 2 * trace_R + spread_R * A_RDD.square().sum((-2, -1))

        return risk

    @property
    def exact_where(self) -> str:
        return "one layer of eq. (8)"

    def arrays(self) -> Mapping[str, np.ndarray]:
        return {"least_risk": np.array([least_risk(self.dim, n) for n in self.context_R])}


def best_step(dim: int, context: int) -> float:
    return context / (context + dim - 1)


def least_risk(dim: int, context: int) -> float:
    """Return the risk at A = best_step I; for Gaussian inputs it is dim (dim + 1) / (context + dim + 1)."""
    return dim * (dim - 1) / (context + dim - 1)
