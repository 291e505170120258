"""ahn, Lemma 4: on S = {A_l = a_l Sigma^{-1}} of (8) the risk does not change when two layers swap.

Measured three ways: by the exact polynomial; prompt by prompt, since on S the prediction itself is unchanged,
through the Gram path and, as far as the scores of all pairs of tokens fit in memory, the token path; and by
words (L <= 3), which also give the exact change off S.

Prompts are whitened, x = Sigma^{1/2} u and w = Sigma^{-1/2} v: there A_l is Sigma^{1/2} A_l Sigma^{1/2}, on S
a_l I, predictions are the same and the condition number of Sigma drops out.

L layers, D covariates.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from icl.checks import attention
from icl.checks.ahn.support import layer_swaps
from icl.checks.ahn.support.settings import PromptSettings
from icl.checks.numbers import finding, tried
from icl.checks.settings import fits_in_memory, integer
from icl.checks.verdict import Control, Finding
from icl.random import generator
from icl.verdicts import decide

WORDS_LAYERS, WORDS_DIM = 3, 10
REMARKS = [
    "More is true: on S every prediction is unchanged, on every prompt.",
    "The proof uses only that all A_l are multiples of one matrix; w ~ N(0, Sigma^-1) is not needed.",
]


@dataclass(eq=False)
class Lemma4(PromptSettings):
    """Settings: of the prompts, their number (`samples`), and the layers."""

    dim: int = integer(5, 1, 32, "the Gram matrices of all prompts, held at once, fill the memory")
    layers: int = integer(3, 2, 12, "the alternating product of the layers loses its digits")
    samples: int = integer(1000, 1)

    task_covariance = "inverse"

    reference = "Lemma 4"
    claim = (
        "Let w ~ N(0, Sigma^-1) and every A_l be a multiple of Sigma^-1. The population risk does not change "
        "when two layers are swapped."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        fits_in_memory(self.samples, 1, (self.dim + 1) ** 2)
        self.whitened = replace(
            self.law,
            root_RDD=torch.eye(self.dim, dtype=torch.float64)[None],
            task_root_RDD=self.law.root_RDD.mT @ self.law.task_root_RDD,
        )

    def measure(self) -> Finding:
        law, rng = self.whitened, generator(self.seed, "check")
        gradient_step = 1 / (1 + law.dim / law.context_R[0])  # a_l of gradient descent
        a_L = rng.uniform(0.2, 1.2, self.layers) * gradient_step
        A_LDD = torch.tensor(a_L)[:, None, None] * torch.eye(law.dim, dtype=torch.float64)
        gram = law.gram_prompts([rng], self.samples)
        tokens, notes = attention.affordable_prompts(law, self.samples, rng)
        changes = {
            "polynomial_error": layer_swaps.on_the_polynomial(law, a_L),
            "gram_error": layer_swaps.on_predictions(law, A_LDD, a_L, gram),
            "token_error": layer_swaps.on_predictions(law, A_LDD, a_L, tokens),
        }
        if law.dim <= WORDS_DIM:
            changes["words_error"] = layer_swaps.on_words(law, A_LDD[:WORDS_LAYERS], a_L[:WORDS_LAYERS])
        return finding(
            [
                *layer_swaps.numbers(changes),
                tried(max_error=max(error for error, _ in changes.values())).means(
                    "largest of the relative changes under a swap"
                ),
            ],
            self._control(A_LDD, a_L),
            notes=notes,
            remarks=REMARKS,
        )

    def _control(self, A_LDD: Tensor, a_L: np.ndarray) -> Control:
        """Layers that are not on S."""
        law = self.whitened
        if law.dim > WORDS_DIM:
            prompt = law.gram_prompts([generator(self.seed, "control", 1)], self.samples)
            change = layer_swaps.on_predictions(law, layer_swaps.off_s(A_LDD, self.seed), a_L, prompt)
            text = (
                "largest change of a prediction when layers off S are swapped, a random matrix added to A_0"
            )
        elif law.dim == 1:
            longer = torch.cat([1.1 * A_LDD[:1], A_LDD[1:2]])
            change = layer_swaps.on_risks(law, [A_LDD[:2], longer], a_L[:2])
            text = (
                "change of the exact risk with a_0 a tenth larger instead of a swap, L = 2; at dim 1 "
                "every A is on S"
            )
        else:
            change = layer_swaps.on_words(law, layer_swaps.off_s(A_LDD[:2], self.seed), a_L[:2])
            text = (
                "change of the exact risk when two layers off S are swapped, a random matrix added to "
                "A_0, L = 2"
            )
        return Control(text, change[0], decide(*change) == "fails")
