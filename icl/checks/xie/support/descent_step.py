"""One step of gradient descent written out, token by token.

B prompts, C context tokens, D covariates.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from icl.checks.xie.support.yq_lsa import descent_from
from icl.constructions.xie.initial_guess import one_step_gd
from icl.models import Full, LinearTransformer
from icl.random import generator
from icl.tasks import LinearRegressionLaw, TokenPrompt


def step_errors(law: LinearRegressionLaw, eta: float, samples: int, seed: int) -> dict[str, float]:
    """Largest error of the three forward passes, and of three wrong readings of (10)."""
    w_star_D = law.mean_RD[0]
    unguessed = law.token_prompts([generator(seed, "check")], samples)
    prompt = with_guess(unguessed, w_star_D)
    model = Full(law.dim, 1)
    model.load(dict(zip("PQ", (M[None, None] for M in one_step_gd(w_star_D, eta)), strict=True)))
    zero_D = torch.zeros_like(w_star_D)
    step_B, size_B = step_prediction(prompt, w_star_D, eta), step_size(prompt, w_star_D, eta)
    passes = {
        "tokens": LinearTransformer(model, "tokens").predict(prompt),
        "gram": LinearTransformer(model).predict(prompt.gram()),
        "v": LinearTransformer(descent_from(w_star_D, eta), "tokens").predict(unguessed),
    }
    errors = {name: np.abs(pass_RB[0].detach().numpy() - step_B) for name, pass_RB in passes.items()}
    layer_B = passes["tokens"][0].detach().numpy()
    errors["a step a tenth longer"] = np.abs(layer_B - step_prediction(prompt, w_star_D, 1.1 * eta))
    if w_star_D.any():
        errors["the step from 0"] = np.abs(layer_B - step_prediction(prompt, zero_D, eta))
        bare_B = LinearTransformer(model, "tokens").predict(unguessed)[0].detach().numpy()
        errors["the layer with y_q = 0"] = np.abs(bare_B - step_B)
    return {name: float((error_B / size_B).max()) for name, error_B in errors.items()}


def with_guess(prompt: TokenPrompt, guess_D: Tensor) -> TokenPrompt:
    """Return the same prompts with y_q = <guess, x_q> in the query token."""
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
    """Return the sizes of all terms of step_prediction, all its minus signs plus."""
    context_RBNP = prompt.context_RBNP.abs()
    context_RBNP[..., -1] *= -1
    absolute = TokenPrompt(context_RBNP, prompt.query_RBP.abs(), prompt.target_RB)
    return step_prediction(absolute, start_D.abs(), -eta)
