"""ahn, section 6: for linear regression "softmax activations generally degrade the prediction performance"
(von Oswald et al. 2023), and "softmax transformers typically need more attention heads" to match linear ones.

One layer of eq. (2), x and w ~ N(0, I), with one head and with several. One head is decided by a lower bound
for all heads of softmax attention (icl.theory.ahn.softmax_bound), sampled and with branch and bound. Beside
it the least loss that descents from random starts find on prompts drawn as tokens, measured on fresh ones,
against the best layer of linear attention (Theorem 1) on the same prompts: no head may be below the bound,
and one near the linear optimum refutes the claim. Linear attention itself is searched in the same way.

Of a head only the last row b of P and the first D columns K of Q enter. H heads, B prompts, N context tokens,
M = N + 1 keys with the query, which eq. (2) normalises over and then masks, D covariates, P = D + 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from icl.checks.ahn.support.linear_layer import MOMENTS, LinearLayer
from icl.checks.ahn.support.softmax_heads import SoftmaxHeads
from icl.checks.numbers import exact, finding, sampled
from icl.checks.settings import in_range, integer, law_of, search_starts, validate
from icl.checks.verdict import CONFIDENCE, Control, Finding
from icl.errors import InputError
from icl.random import generator
from icl.theory.ahn import softmax_bound
from icl.theory.closed_forms import isotropic_risk

MARGIN = 0.05  # of the linear optimum: less is no degradation, and what a search on so many prompts may lose
SCORES = 2  # samples of a prompt's scores for each prompt that is searched on
MAX_NUMBERS = 50_000_000
SOURCE = f"the claim; the bound holds with {CONFIDENCE:.1%} confidence for all heads together"
HEADS = f"the bound; {CONFIDENCE:.1%} interval of the mean difference on fresh prompts"


@dataclass(eq=False)
class Softmax:
    """Settings: dimension, context length, numbers of heads (one among them), random starts for each, prompts
    to search on (`samples`), boxes that branch and bound may use, seed of all draws."""

    dim: int = integer(5, 1, 32, "a search in (dim + 1)^2 variables a head takes minutes")
    context: int = integer(20, 1)
    heads: Sequence[int] = (1, 2)
    starts: int = search_starts(2, 2)
    samples: int = integer(4000, 500)
    boxes: int = integer(8000, 256, 1_000_000, "branch and bound takes days")
    seed: int = integer(0, 0)

    reference = "Section 6, on activations; eq. (2)"
    claim = (
        "On linear regression the least population risk of one head of softmax attention is more than 5 % "
        "above that of one head of linear attention."
    )

    def __post_init__(self) -> None:
        validate(self)
        if isinstance(self.heads, str) or not isinstance(self.heads, Sequence) or 1 not in self.heads:
            raise InputError(f"check.heads={self.heads}: must be a list of numbers of heads with 1 in it")
        self.heads = [in_range("check.heads", H, 1, 16, "a search takes minutes") for H in self.heads]
        if len(set(self.heads)) < len(self.heads):
            raise InputError(f"check.heads={self.heads}: has duplicates")
        self.law = law_of(self.dim, self.context, self.seed, covariance="identity")
        # Tokens, and of each head the scores and their softmax with their gradients.
        each = (self.context + 1) * (self.dim + 1 + 4 * max(self.heads))
        if self.samples * each > MAX_NUMBERS:
            raise InputError(
                f"check.context={self.context}: with check.samples={self.samples} and {max(self.heads)} "
                f"heads tokens and scores fill the memory; at most {MAX_NUMBERS // each} samples fit"
            )

    def search(self) -> SoftmaxHeads:
        """Return the search for heads, of softmax and of linear attention alike."""
        return SoftmaxHeads(self.law, self.starts, self.samples, self.seed, max(self.heads))

    def bounds(self) -> tuple[float, float, float]:
        """Return a lower bound of every softmax head's excess over the linear optimum, the most that more
        boxes can make of it, and the latter for linear attention."""
        D, N = self.dim, self.context
        t_MN = generator(self.seed, "check").standard_normal((SCORES * self.samples, N))
        share = softmax_bound.softmax_share(t_MN, CONFIDENCE)
        linear = softmax_bound.linear_share(t_MN, CONFIDENCE)
        gain = 1.0  # no bound
        if D >= softmax_bound.LEAST_DIM:
            gain = softmax_bound.most_gain(D, share, self.boxes).value
        gains = gain, *(float(its.above(np.array(D - 1.0))) for its in (share, linear))
        low, limit, of_linear = (D * (1 - gain) / isotropic_risk(D, N) - 1 for gain in gains)
        return low, limit, of_linear

    def measure(self) -> Finding:
        search = self.search()
        excess = {H: search.excess(H, "softmax") for H in self.heads}
        (one, low, high, _), linear = excess[1], search.excess(1, "identity")
        matched = [H for H in self.heads if excess[H].mean < MARGIN]
        bound, limit, control = self.bounds()
        verdict = "fails" if high < MARGIN else "holds" if bound > MARGIN else "undecided"
        identity_DD = torch.eye(self.dim, dtype=torch.float64)
        decides = (
            sampled(excess_bound=bound)
            .means("lower bound of the excess of every softmax head over the linear optimum, relative")
            .judged(verdict, ">", MARGIN, SOURCE)
        )
        sound = (
            sampled(excess_high=high)
            .means("upper end of the interval of the excess of the best softmax head found, relative")
            .above(bound, HEADS, otherwise="undecided")
        )
        return finding(
            [
                decides.provided(sound),
                sampled(
                    excess_of_one_head=one,
                    excess_low=low,
                    excess_by_heads={str(H): its.mean for H, its in excess.items()},
                    loss_by_heads={str(H): its.loss for H, its in excess.items()},
                    linear_found=linear.loss,
                    linear_excess=linear.mean,
                ).means(
                    excess_of_one_head="excess of the best softmax head found over the linear optimum, "
                    "relative",
                    excess_low="lower end of the interval of that excess",
                    excess_by_heads="relative excess of the best layer found over the linear optimum, by "
                    "number of heads",
                    loss_by_heads="loss of the best layer found on fresh prompts, by number of heads",
                    linear_found="loss of the best linear layer that the same search finds",
                    linear_excess="relative excess of that layer over the linear optimum",
                ),
                exact(linear_optimum=search.optimum, starts=self.starts)
                .means(
                    linear_optimum="least risk of linear attention, in closed form",
                    starts="number of random starts for each number of heads",
                )
                .by_definition()
                .also_by(MOMENTS, linear_optimum=LinearLayer(identity_DD, self.context).least_risk),
            ],
            Control(
                "the same bound for linear attention, without branch and bound, which could only lower it",
                control,
                control <= MARGIN,
            ),
            notes=[self._note(verdict, bound, limit)],
            remarks=[
                f"Numbers of heads within {MARGIN:.0%} of linear attention: "
                + (", ".join(map(str, matched)) if matched else f"none of {self.heads}")
                + ". With two heads, the terms that do not depend on the query can cancel.",
            ],
        )

    def _note(self, verdict: str, bound: float, limit: float) -> str:
        if verdict != "undecided":
            return "The bound lets a head choose its weights anew for each query, and is no least risk."
        if self.dim < softmax_bound.LEAST_DIM:
            return f"undecided: the bound needs check.dim of at least {softmax_bound.LEAST_DIM}."
        if limit <= MARGIN:
            return f"undecided: no number of boxes raises the bound above {limit:.1%}."
        return (
            f"undecided: the bound of all heads, {bound:.1%}, is too low; `icl check check=ahn/softmax "
            f"check.dim={self.dim} check.context={self.context} check.boxes={8 * self.boxes}` raises it, to "
            f"{limit:.1%} at most."
        )
