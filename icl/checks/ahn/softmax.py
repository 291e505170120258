"""ahn, section 6: for linear regression "softmax activations generally degrade the prediction performance"
(von Oswald et al. 2023), and "softmax transformers typically need more attention heads" to match linear ones.

One layer of eq. (2), x and w ~ N(0, I), with one head and with several: the least loss that descents from
random starts find on prompts drawn as tokens, measured on fresh ones, against the best layer of linear
attention (Theorem 1) on the same prompts. Linear attention itself is searched in the same way. A head found
near the linear optimum refutes the claim; that none is found is evidence, and no proof.

Of a head only the last row b of P and the first D columns K of Q enter. H heads, B prompts, N context tokens,
M = N + 1 keys with the query, which eq. (2) normalises over and then masks, D covariates, P = D + 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from icl.checks.settings import affordable_starts, in_range, law_of
from icl.checks.verdict import CONFIDENCE, QUANTILE, Bound, Control, Finding
from icl.errors import InputError, whole
from icl.random import generator
from icl.tasks import TokenPrompt
from icl.theory.closed_forms import isotropic_risk, isotropic_step

MARGIN = 0.05  # of the linear optimum: less is no degradation, and what a search on so many prompts may lose
TEST = 8  # fresh prompts for each that is searched on
ITERATIONS = 300
SPREAD = 0.3  # of the starts' entries
MAX_NUMBERS = 50_000_000
BLOCK = 4_000_000  # numbers that the fresh prompts take at a time


@dataclass(eq=False)
class Softmax:
    """Settings: dimension, context length, numbers of heads (one among them), random starts for each, prompts
    to search on (`samples`), seed of all draws."""

    dim: int = 5
    context: int = 20
    heads: Sequence[int] = (1, 2)
    starts: int = 4
    samples: int = 4000
    seed: int = 0

    reference = "Section 6, on activations; eq. (2)"
    claim = (
        "Of one head, softmax attention has a loss at least 5 % larger than linear attention's on linear "
        "regression."
    )

    def __post_init__(self) -> None:
        in_range("check.dim", self.dim, 1, 32, "a search in (dim + 1)^2 variables a head takes minutes")
        if isinstance(self.heads, str) or not isinstance(self.heads, Sequence) or 1 not in self.heads:
            raise InputError(f"check.heads={self.heads}: must be a list of numbers of heads with 1 in it")
        self.heads = [in_range("check.heads", H, 1, 16, "a search takes minutes") for H in self.heads]
        if len(set(self.heads)) < len(self.heads):
            raise InputError(f"check.heads={self.heads}: has duplicates")
        affordable_starts("check.starts", self.starts, 2)
        whole("check.samples", self.samples, 500)
        self.law = law_of(self.dim, self.context, self.seed, covariance="identity")
        # Tokens, and of each head the scores and their softmax with their gradients.
        each = (self.context + 1) * (self.dim + 1 + 4 * max(self.heads))
        if self.samples * each > MAX_NUMBERS:
            raise InputError(
                f"check.context={self.context}: with check.samples={self.samples} and {max(self.heads)} "
                f"heads tokens and scores fill the memory; at most {MAX_NUMBERS // each} samples fit"
            )

    def measure(self) -> Finding:
        drawn = self.law.token_prompts([generator(self.seed, "search")], self.samples)
        optimum = isotropic_risk(self.dim, self.context)
        found = {H: self._excess(H, drawn, "softmax") for H in self.heads}
        excess = {H: its / optimum for H, (its, _) in found.items()}
        low, high = _interval(*found[1], optimum)
        linear = self._excess(1, drawn, "identity")
        matched = [H for H in self.heads if excess[H] < MARGIN]
        return Finding(
            "fails" if high < MARGIN else "undecided",  # another search may find a better head
            {
                "excess_low": low,
                "excess_of_one_head": excess[1],
                "excess_high": high,
                "excess_by_heads": {str(H): value for H, value in excess.items()},
                "loss_by_heads": {str(H): optimum + its for H, (its, _) in found.items()},
                "linear_optimum": optimum,
                "linear_found": optimum + linear[0],
                "starts": self.starts,
            },
            Bound(
                MARGIN,
                f"{MARGIN:.0%} of the linear optimum; lower end of the {CONFIDENCE:.1%} interval of the mean "
                "difference on fresh prompts",
                "excess_low",
                ">",
            ),
            Control(
                "the same excess of linear attention, searched in the same way",
                linear[0] / optimum,
                _interval(*linear, optimum)[0] <= MARGIN,
            ),
            notes=[
                f"softmax: the best of {self.starts} descents for each number of heads, no proven minimum.",
                f"The best head found is {excess[1]:.1%} above linear attention, between {low:.1%} and "
                f"{high:.1%}: evidence for the claim, no proof, as no lower bound over all heads is "
                f"known. One below {MARGIN:.0%} would refute it; to search further: `icl check "
                f"check=ahn/softmax check.dim={self.dim} check.context={self.context} "
                f"check.starts={8 * self.starts} check.samples={2 * self.samples}`.",
            ],
            remarks=[
                f"Heads that come within {MARGIN:.0%} of linear attention: "
                + (", ".join(map(str, matched)) if matched else f"none of {self.heads}")
                + ". Two heads can subtract what does not depend on the query; the keys' mean stays in both.",
            ],
            kinds={"*": "sampled", "linear_optimum": "exact", "starts": "exact"},
        )

    def _excess(self, heads: int, drawn: TokenPrompt, activation: str) -> tuple[float, float]:
        """At the best of all descents, the mean loss on fresh prompts above that of the best linear layer on
        the same, with its standard error."""
        rng = generator(self.seed, "search", heads)
        signs = [(-1) ** start for start in range(self.starts)]  # of local minima of their own
        ends = [self._descend(heads, sign, rng, drawn, activation) for sign in signs]
        _, b_HP, K_HPD = min(ends, key=lambda end: end[0])
        best = torch.zeros(1, self.dim + 1).double(), torch.zeros(1, self.dim + 1, self.dim).double()
        best[0][0, -1] = 1
        best[1][0, :-1] = -isotropic_step(self.dim, self.context) * torch.eye(self.dim).double()
        above_B = torch.cat(
            [
                losses(b_HP, K_HPD, fresh, activation) - losses(*best, fresh, "identity")
                for fresh in self._fresh()
            ]
        )
        return float(above_B.mean()), float(above_B.std()) / len(above_B) ** 0.5

    def _fresh(self) -> Iterator[TokenPrompt]:
        """The same for every number of heads, in parts."""
        rng, left = generator(self.seed, "eval"), TEST * self.samples
        part = max(1, BLOCK // ((self.context + 1) * (self.dim + 1 + max(self.heads))))
        for start in range(0, left, part):
            yield self.law.token_prompts([rng], min(part, left - start))

    def _descend(
        self, heads: int, sign: int, rng: np.random.Generator, prompt: TokenPrompt, activation: str
    ) -> tuple[float, Tensor, Tensor]:
        D, P = self.dim, self.dim + 1
        start = SPREAD * rng.standard_normal(heads * (P + P * D))
        signs = rng.choice([-1, 1], heads)
        signs[0] = sign

        def weights(theta: Tensor) -> tuple[Tensor, Tensor]:
            return theta[: heads * P].view(heads, P), theta[heads * P :].view(heads, P, D)

        # Near heads that read labels, by keys like the query or unlike it: others end elsewhere.
        b_HP, K_HPD = weights(torch.from_numpy(start))
        b_HP[:, -1] += torch.from_numpy(signs)
        K_HPD[:, :D] -= torch.from_numpy(signs)[:, None, None] * torch.eye(D, dtype=torch.float64) / 2

        def objective(point: np.ndarray) -> tuple[float, np.ndarray]:
            theta = torch.from_numpy(point).requires_grad_()
            loss = losses(*weights(theta), prompt, activation).mean()
            return loss.item(), torch.autograd.grad(loss, theta)[0].numpy()

        run = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": ITERATIONS})
        return float(run.fun), *weights(torch.from_numpy(run.x))


def _interval(excess: float, stderr: float, optimum: float) -> tuple[float, float]:
    half = QUANTILE * stderr
    return (excess - half) / optimum, (excess + half) / optimum


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
