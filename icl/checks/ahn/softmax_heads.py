"""The search for the best softmax layer with H heads, on prompts drawn as tokens, and its excess over linear
attention on fresh ones.

Of a head only the last row b of P and the first D columns K of Q enter. H heads, B prompts, N context tokens,
M = N + 1 keys with the query, which eq. (2) normalises over and then masks, D covariates, P = D + 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from icl.checks.statement import Sample
from icl.random import generator
from icl.tasks import LinearRegressionLaw, TokenPrompt
from icl.theory.closed_forms import isotropic_risk, isotropic_step

TEST = 8  # fresh prompts for each that is searched on
ITERATIONS = 300
ROUGH = 4  # the starts descend on a quarter of the prompts, the best end on all of them
SPREAD = 0.3  # of the starts' entries
BLOCK = 4_000_000  # numbers that the fresh prompts take at a time


@dataclass(frozen=True, eq=False)
class SoftmaxHeads:
    """Descents from `starts` random starts, on `samples` prompts of an isotropic law."""

    law: LinearRegressionLaw
    starts: int
    samples: int
    seed: int
    widest: int  # the most heads of any search, for which the fresh prompts come in parts

    @property
    def optimum(self) -> float:
        """The loss of the best linear layer."""
        return isotropic_risk(self.law.dim, self.law.context_R[0])

    def excess(self, heads: int, activation: str) -> Sample:
        """Return the mean loss of the best descent on fresh prompts, less that of the best linear layer on
        the same prompts, as a share of the latter's risk."""
        D, rng = self.law.dim, generator(self.seed, "search", heads)
        few, drawn = (
            self.law.token_prompts([generator(self.seed, "search")], count)
            for count in (self.samples // ROUGH, self.samples)
        )
        signs = [(-1) ** start for start in range(self.starts)]  # of local minima of their own
        ends = [self.descend(heads, self.start(heads, sign, rng), few, activation) for sign in signs]
        _, near = min(ends, key=lambda end: end[0])
        b_HP, K_HPD = self.weights(heads, torch.from_numpy(self.descend(heads, near, drawn, activation)[1]))
        best = torch.zeros(1, D + 1).double(), torch.zeros(1, D + 1, D).double()
        best[0][0, -1] = 1
        best[1][0, :-1] = -isotropic_step(D, self.law.context_R[0]) * torch.eye(D).double()
        above_B = torch.cat(
            [
                losses(b_HP, K_HPD, fresh, activation) - losses(*best, fresh, "identity")
                for fresh in self.fresh()
            ]
        )
        stderr = float(above_B.std()) / len(above_B) ** 0.5
        return Sample(float(above_B.mean()) / self.optimum, stderr / self.optimum)

    def fresh(self) -> Iterator[TokenPrompt]:
        """Return the same for every number of heads, in parts."""
        rng, left = generator(self.seed, "eval"), TEST * self.samples
        part = max(1, BLOCK // ((self.law.context_R[0] + 1) * (self.law.dim + 1 + self.widest)))
        for start in range(0, left, part):
            yield self.law.token_prompts([rng], min(part, left - start))

    def start(self, heads: int, sign: int, rng: np.random.Generator) -> np.ndarray:
        """Draw near heads that read labels, by keys like the query or unlike it: others end elsewhere."""
        D, P = self.law.dim, self.law.dim + 1
        theta = SPREAD * rng.standard_normal(heads * (P + P * D))
        signs = rng.choice([-1, 1], heads)
        signs[0] = sign
        b_HP, K_HPD = self.weights(heads, torch.from_numpy(theta))
        b_HP[:, -1] += torch.from_numpy(signs)
        K_HPD[:, :D] -= torch.from_numpy(signs)[:, None, None] * torch.eye(D, dtype=torch.float64) / 2
        return theta

    def weights(self, heads: int, theta: Tensor) -> tuple[Tensor, Tensor]:
        D, P = self.law.dim, self.law.dim + 1
        return theta[: heads * P].view(heads, P), theta[heads * P :].view(heads, P, D)

    def descend(
        self, heads: int, start: np.ndarray, prompt: TokenPrompt, activation: str
    ) -> tuple[float, np.ndarray]:
        def objective(point: np.ndarray) -> tuple[float, np.ndarray]:
            theta = torch.from_numpy(point).requires_grad_()
            loss = losses(*self.weights(heads, theta), prompt, activation).mean()
            return loss.item(), torch.autograd.grad(loss, theta)[0].numpy()

        run = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": ITERATIONS})
        return float(run.fun), run.x


def losses(b_HP: Tensor, K_HPD: Tensor, prompt: TokenPrompt, activation: str) -> Tensor:
    """(B,): squared errors of one layer, b the last rows of P and K the first D columns of Q."""
    z_BNP, query_BP = prompt.context_RBNP[0], prompt.query_RBP[0]
    keys_BMP = torch.cat([z_BNP, query_BP[:, None]], 1)
    read_HBP = torch.einsum("hpd,bd->hbp", K_HPD, query_BP[:, :-1])
    scores_HBM = torch.einsum("bmp,hbp->hbm", keys_BMP, read_HBP)
    if activation == "softmax":
        weights_HBN = torch.softmax(scores_HBM, -1)[..., :-1]
    else:
        weights_HBN = scores_HBM[..., :-1] / z_BNP.shape[1]
    label_B = (weights_HBN * torch.einsum("bnp,hp->hbn", z_BNP, b_HP)).sum((0, 2))
    return (prompt.read_out * label_B - prompt.target_RB[0]).square()
