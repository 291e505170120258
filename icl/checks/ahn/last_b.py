"""ahn, footnote 4: the objective does not depend on the last B of eq. (11).

B_{L-1} moves the covariates after every label has been read; labels move no covariate. So any last B leaves
every label of Z_L where it is, prompt by prompt, not only the risk.

B prompts, M = N + 1 tokens with the query, D covariates, P = D + 1 token width, L layers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from icl.checks import attention
from icl.checks.ahn.support.settings import PromptSettings
from icl.checks.rounding import along_a_path
from icl.checks.settings import in_range
from icl.checks.verdict import Control, Finding, decide
from icl.errors import whole
from icl.models.parametrizations import sparse_stack
from icl.random import generator

MAX_LAYERS = 4


@dataclass(eq=False)
class LastB(PromptSettings):
    """Settings: of the prompts, their number (`samples`), and the layers, two at least."""

    layers: int = 3
    samples: int = 64

    reference = "Section 5.1, footnote 4; eq. (11)"
    claim = "The loss of eq. (11) does not depend on the last B."

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("check.samples", self.samples, 1, 100_000)
        reason = "terms have degree 3^layers in the tokens and rounding grows with them"
        in_range("check.layers", self.layers, 2, MAX_LAYERS, reason)
        attention.affordable(self.samples * self.layers, self.context)

    def measure(self) -> Finding:
        rng = generator(self.seed, "check", 1)
        A_LDD = self._random(rng) / float(self.law.Sigma_RDD[0].trace())
        B_LDD, other_LDD = self._random(rng), self._random(rng)
        last_LDD = torch.cat([B_LDD[:-1], other_LDD[-1:]])
        earlier_LDD = torch.cat([B_LDD[:-2], other_LDD[-2:-1], B_LDD[-1:]])
        change, control = (self._change(A_LDD, B_LDD, changed) for changed in (last_LDD, earlier_LDD))
        layer = 3 * (self.dim + 1) + (self.context + 1) + 3
        bound = along_a_path(4 * (layer * (3**self.layers - 1) // 2 + 1), "largest_change")
        return Finding(
            decide(change, bound.value),
            {
                "largest_change": change,
                "change_of_covariates": self._change(A_LDD, B_LDD, last_LDD, slice(-1)),
            },
            bound,
            Control("largest change of a label with another B_{L-2}", control, control > bound.value),
            remarks=["Every label of the last layer stays, the query's and the context's, on every prompt."],
            kinds={"*": "tried"},
        )

    def _change(
        self, A_LDD: Tensor, B_LDD: Tensor, changed_LDD: Tensor, rows: slice = slice(-1, None)
    ) -> float:
        """Largest change of these rows of Z_L, as a share of the sizes of all terms."""
        Z_BPM = attention.tokens_of(self.law.token_prompts([generator(self.seed, "check")], self.samples))
        stacks = [sparse_stack(A_LDD[None], B[None]) for B in (B_LDD, changed_LDD)]
        one_BPM, other_BPM = (attention.every_layer(P[0, :, 0], Q[0, :, 0], Z_BPM)[-1] for P, Q in stacks)
        P, Q = stacks[0]
        sizes_BPM = attention.every_layer(P[0, :, 0].abs(), Q[0, :, 0].abs(), Z_BPM.abs())[-1]
        return float(((one_BPM - other_BPM).abs() / sizes_BPM)[:, rows].max())

    def _random(self, rng: np.random.Generator) -> Tensor:
        return torch.from_numpy(rng.standard_normal((self.layers, self.dim, self.dim))) / self.dim
