"""Logistic regression in context, giannou's section 6: points a ~ N(0, I) scaled so that the longest of a
prompt has norm 1, labels sign(<a, w>) with w ~ N(0, I).

What is to be learnt is the minimum x* of the regularised logistic loss, eq. (3.5), of the points whose
labels the prompt shows. The query is one point more: its label is neither shown nor in the loss. A model that
reads a parameter is trained on x* itself, any other on <x*, a_query>.

R replicas, B prompts, N labelled points (M = N + 1 with the query), D covariates.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from icl.errors import InputError, real, whole
from icl.kernel.normal import standard_normal
from icl.tasks.estimators import SampledTokens
from icl.tasks.law import Draw, Estimator, Generators
from icl.tasks.linear_regression import MAX_DIM
from icl.tasks.logistic_loss import LogisticLoss, damped_newton
from icl.tasks.prompts import TokenPrompt
from icl.tasks.token_law import TokenLaw

TOLERANCE = 1e-10  # norm of the gradient at a target
LEAST_MU = 1e-4  # below, rounding is as large as 1 / mu makes it


class LogisticRegression:
    """The task as a user states it. `context` points have labels; `mu` is the regularisation of (3.5)."""

    def __init__(self, dim: int = 5, context: int = 26, mu: float = 0.1, prefix: str = "task") -> None:
        self.dim = whole(f"{prefix}.dim", dim, 1, MAX_DIM)
        self.context = whole(f"{prefix}.context", context, 1)
        self.mu = real(f"{prefix}.mu", mu)
        if self.mu < LEAST_MU:
            raise InputError(f"{prefix}.mu={mu}: must be at least {LEAST_MU}")

    def law(self, seeds: Sequence[int]) -> "LogisticRegressionLaw":
        return LogisticRegressionLaw((self.context,) * len(seeds), self.dim, self.mu)


@dataclass(frozen=True)
class LogisticRegressionLaw(TokenLaw):
    """The same for every replica. Draws take one generator per replica. Somebody's own points are taken as
    they are (`encode`): as long as 1 at most, as those that are drawn."""

    declared: ClassVar[tuple[str, ...]] = ("estimators", "points", "targets")

    context_R: tuple[int, ...]
    dim: int
    mu: float
    read_out: int = 1

    def replica(self, r: int) -> Self:
        return replace(self, context_R=self.context_R[r : r + 1])

    def points(self, generators: Generators, batch: int) -> tuple[Tensor, Tensor]:
        """Return (a, y) with shapes (R, B, M, D) and (R, B, M); the last is the query."""
        size = (batch, self.context_R[0] + 1, self.dim)
        a_RBMD = torch.from_numpy(np.stack([standard_normal(rng, size) for rng in generators]))
        a_RBMD /= a_RBMD.norm(dim=-1).amax(-1)[..., None, None]
        w_RBD = torch.from_numpy(np.stack([standard_normal(rng, (batch, self.dim)) for rng in generators]))
        y_RBM = torch.where((a_RBMD @ w_RBD[..., None])[..., 0] >= 0, 1.0, -1.0).double()
        return a_RBMD, y_RBM

    def targets(self, a_RBND: Tensor, y_RBN: Tensor) -> Tensor:
        """x* of these labelled points, (R, B, D)."""
        loss = LogisticLoss(a_RBND.flatten(0, 1), y_RBN.flatten(0, 1), self.mu)
        start_BD = torch.zeros(len(loss.y_BN), self.dim, dtype=torch.float64)
        return damped_newton(loss, start_BD, TOLERANCE).x_BD.unflatten(0, a_RBND.shape[:2])

    def token_prompts(self, generators: Generators, batch: int) -> TokenPrompt:
        return self.prompts_and_targets(generators, batch)[0]

    def prompts_and_targets(self, generators: Generators, batch: int) -> tuple[TokenPrompt, Tensor]:
        """Prompts, and x* of each."""
        a_RBMD, y_RBM = self.points(generators, batch)
        a_RBND, y_RBN, query_RBD = a_RBMD[:, :, :-1], y_RBM[:, :, :-1], a_RBMD[:, :, -1]
        x_RBD = self.targets(a_RBND, y_RBN)
        context_RBNP = torch.cat([a_RBND, y_RBN[..., None]], dim=-1)
        target_RB = (x_RBD * query_RBD).sum(-1)
        return TokenPrompt(context_RBNP, pad(query_RBD, (0, 1)), target_RB, self.read_out), x_RBD

    def estimators(self, model: Any) -> Mapping[str, Callable[[], Estimator]]:
        if getattr(model, "reads", None) == "parameter":
            return {"sampled": lambda: SampledParameters(self)}
        return super().estimators(model)

    def arrays(self) -> Mapping[str, np.ndarray]:
        return {"context": np.array(self.context_R)}


class SampledParameters(SampledTokens):
    """Mean over the D numbers of a parameter of their squared distance to x*."""

    law: LogisticRegressionLaw

    def draw(self, generators: Generators, batch: int) -> Draw:
        prompt, x_RBD = self.law.prompts_and_targets(generators, batch)
        return {"context": prompt.context_RBNP, "query": prompt.query_RBP, "target": x_RBD}

    def risk(self, model: Any, draw: Draw) -> Tensor:
        target_RB = (draw["target"] * draw["query"][..., :-1]).sum(-1)
        prompt = TokenPrompt(draw["context"], draw["query"], target_RB, self.law.read_out)
        return (model.read(prompt) - draw["target"]).square().mean((-1, -2))
