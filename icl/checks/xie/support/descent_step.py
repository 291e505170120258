"""One step of gradient descent written out, token by token.

B prompts, C context tokens, D covariates.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from torch import Tensor

from icl.tasks import TokenPrompt


def with_guess(prompt: TokenPrompt, guess_D: Tensor) -> TokenPrompt:
    """The same prompts with y_q = <guess, x_q> in the query token."""
    query_RBP = prompt.query_RBP.clone()
    query_RBP[..., -1] = query_RBP[..., :-1] @ guess_D
    return replace(prompt, query_RBP=query_RBP)


def step_prediction(prompt: TokenPrompt, start_D: Tensor, eta: float) -> np.ndarray:
    """<w - eta grad R(w), x_q> at w = start, token by token."""
    x_BND, y_BN = prompt.context_RBNP[0, ..., :-1].numpy(), prompt.context_RBNP[0, ..., -1].numpy()
    w_D, gradient_BD = start_D.numpy(), np.zeros_like(x_BND[:, 0])
    for i in range(x_BND.shape[1]):
        x_BD = x_BND[:, i]
        gradient_BD = gradient_BD + (x_BD @ w_D - y_BN[:, i])[:, None] * x_BD / x_BND.shape[1]
    return ((w_D - eta * gradient_BD) * prompt.query_RBP[0, :, :-1].numpy()).sum(1)


def step_size(prompt: TokenPrompt, start_D: Tensor, eta: float) -> np.ndarray:
    """The sizes of all terms of step_prediction, all its minus signs plus."""
    context_RBNP = prompt.context_RBNP.abs()
    context_RBNP[..., -1] *= -1
    absolute = TokenPrompt(context_RBNP, prompt.query_RBP.abs(), prompt.target_RB)
    return step_prediction(absolute, start_D.abs(), -eta)
