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
from icl.checks.numbers import finding, tried
from icl.checks.rounding import PATH, path_rounding
from icl.checks.settings import integer
from icl.checks.verdict import Control, Finding
from icl.models.parametrizations import sparse_stack
from icl.random import generator


@dataclass(eq=False)
class LastB(PromptSettings):
    """Settings: of the prompts, their number (`samples`), and the layers, two at least."""

    layers: int = integer(3, 2, 4, "terms have degree 3^layers in the tokens and rounding grows with them")
    samples: int = integer(64, 1, 100_000)

    reference = "Section 5.1, footnote 4; eq. (11)"
    claim = "The population risk of eq. (11) does not depend on the last B."

    def __post_init__(self) -> None:
        super().__post_init__()
        attention.require_memory(self.samples * self.layers, self.context)

    def measure(self) -> Finding:
        rng = generator(self.seed, "check", 1)
        A_LDD = self._random(rng) / float(self.law.Sigma_RDD[0].trace())
        B_LDD, other_LDD = self._random(rng), self._random(rng)
        last_LDD = torch.cat([B_LDD[:-1], other_LDD[-1:]])
        earlier_LDD = torch.cat([B_LDD[:-2], other_LDD[-2:-1], B_LDD[-1:]])
        change, control = (self._change(A_LDD, B_LDD, changed) for changed in (last_LDD, earlier_LDD))
        bound = path_rounding(4 * attention.stack_operations(self.dim, self.context, self.layers))
        return finding(
            [
                tried(largest_change=change)
                .means("largest change of a label with another last B, relative to its terms")
                .at_most(bound, PATH),
                tried(change_of_covariates=self._change(A_LDD, B_LDD, last_LDD, slice(-1))).means(
                    "largest change of a covariate with another last B, relative to its terms"
                ),
            ],
            Control("the largest change of a label with another B_{L-2}", control, control > bound),
            remarks=[
                "More is true: no label of the last layer changes, neither the query's nor the context's, "
                "on any prompt."
            ],
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
