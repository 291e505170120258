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

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from icl.checks.ahn.support.linear_layer import MOMENTS, LinearLayer
from icl.checks.ahn.support.softmax_heads import SoftmaxHeads
from icl.checks.numbers import exact, finding, sampled
from icl.checks.settings import in_range, integer, law_of, search_starts, validate
from icl.checks.verdict import CONFIDENCE, Control, Finding
from icl.errors import InputError

MARGIN = 0.05  # of the linear optimum: less is no degradation, and what a search on so many prompts may lose
MAX_NUMBERS = 50_000_000
SOURCE = f"the claim; {CONFIDENCE:.1%} interval of the mean difference on fresh prompts"


@dataclass(eq=False)
class Softmax:
    """Settings: dimension, context length, numbers of heads (one among them), random starts for each, prompts
    to search on (`samples`), seed of all draws."""

    dim: int = integer(5, 1, 32, "a search in (dim + 1)^2 variables a head takes minutes")
    context: int = integer(20, 1)
    heads: Sequence[int] = (1, 2)
    starts: int = search_starts(4, 2)
    samples: int = integer(4000, 500)
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

    def measure(self) -> Finding:
        search = self.search()
        excess = {H: search.excess(H, "softmax") for H in self.heads}
        (one, low, high, _), linear = excess[1], search.excess(1, "identity")
        matched = [H for H in self.heads if excess[H].mean < MARGIN]
        # another search may find a better head
        verdict = "fails" if high < MARGIN else "undecided"
        identity_DD = torch.eye(self.dim, dtype=torch.float64)
        return finding(
            [
                sampled(excess_low=low)
                .means(
                    "lower end of the interval of the excess of the best softmax head over the linear "
                    "optimum, relative"
                )
                .judged(verdict, ">", MARGIN, SOURCE),
                sampled(
                    excess_of_one_head=one,
                    excess_high=high,
                    excess_by_heads={str(H): its.mean for H, its in excess.items()},
                    loss_by_heads={str(H): its.loss for H, its in excess.items()},
                    linear_found=linear.loss,
                ).means(
                    excess_of_one_head="excess of the best softmax head found over the linear optimum, "
                    "relative",
                    excess_high="upper end of the interval of that excess",
                    excess_by_heads="relative excess of the best layer found over the linear optimum, by "
                    "number of heads",
                    loss_by_heads="loss of the best layer found on fresh prompts, by number of heads",
                    linear_found="loss of the best linear layer that the same search finds",
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
                "the same excess for linear attention, found by the same search",
                linear.mean,
                linear.low <= MARGIN,
            ),
            notes=[
                f"undecided: the best head of {self.starts} descents is {one:.1%} above linear attention, "
                f"between {low:.1%} and {high:.1%}, and no lower bound over all heads is known. A head "
                f"below {MARGIN:.0%} would refute the claim; `icl check check=ahn/softmax "
                f"check.dim={self.dim} check.context={self.context} check.starts={8 * self.starts} "
                f"check.samples={2 * self.samples}` searches further.",
            ],
            remarks=[
                f"Numbers of heads within {MARGIN:.0%} of linear attention: "
                + (", ".join(map(str, matched)) if matched else f"none of {self.heads}")
                + ". With two heads, the terms that do not depend on the query can cancel.",
            ],
        )
