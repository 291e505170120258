"""Linear attention of ahn's eq. (4) as printed, on every token, for the lemmas about all of them.

B prompts, M = N + 1 tokens, the query last, P = D + 1 token width, L layers.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from icl.errors import InputError
from icl.tasks import LinearRegressionLaw, TokenPrompt

MAX_SCORES = 20_000_000


def longest_context(samples: int) -> int:
    """Return the longest context whose attention scores fit in memory for so many prompts at once."""
    return int((MAX_SCORES / samples) ** 0.5) - 1


def most_prompts(context: int) -> int:
    """Return the most prompts of that context whose attention scores fit in memory at once."""
    return MAX_SCORES // (context + 1) ** 2


def require_memory(samples: int, context: int) -> None:
    """Refuse contexts whose attention scores would not fit in memory."""
    if context > longest_context(samples):
        raise InputError(
            f"check.context={context}: at most {longest_context(samples)} here, attention between all tokens "
            f"takes {samples} * (context + 1)^2 numbers"
        )


def stack_operations(dim: int, context: int, layers: int) -> int:
    """Additions and products along an entry's path. A layer multiplies three factors Z whose errors add up:
    (3^L - 1)/2 times one layer's own."""
    layer = 3 * (dim + 1) + (context + 1) + 3
    return layer * (3**layers - 1) // 2 + 1


def affordable_prompts(
    law: LinearRegressionLaw, samples: int, rng: np.random.Generator
) -> tuple[TokenPrompt, list[str]]:
    """Draw prompts of the law's context, or as long and as many as attention over all tokens can take."""
    context = min(law.context_R[0], longest_context(1))
    count = min(samples, most_prompts(context))
    cut = (context, count) != (law.context_R[0], samples)
    text = f"The token path is measured on {count} prompts at context {context}: more do not fit."
    return replace(law, context_R=(context,)).token_prompts([rng], count), [text] if cut else []


def tokens_of(prompt: TokenPrompt) -> Tensor:
    """Z_0 of the first replica: a column per token, the query last with label 0."""
    return torch.cat([prompt.context_RBNP[0], prompt.query_RBP[0][:, None]], 1).mT


def every_layer(P_LPP: Tensor, Q_LPP: Tensor, Z_BPM: Tensor) -> Tensor:
    """Z_1 .. Z_L (L, B, P, M) by Z <- Z + (1/N) P Z M Z^T Q Z, M = diag(1, .., 1, 0)."""
    mask_M = torch.ones(Z_BPM.shape[-1], dtype=torch.float64)
    mask_M[-1] = 0
    layers = []
    for P_PP, Q_PP in zip(P_LPP, Q_LPP, strict=True):
        Z_BPM = Z_BPM + P_PP @ (Z_BPM * mask_M) @ (Z_BPM.mT @ Q_PP @ Z_BPM) / (Z_BPM.shape[-1] - 1)
        layers.append(Z_BPM)
    return torch.stack(layers)
