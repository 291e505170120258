"""y_q-LSA as a linear transformer block and back (xie, Lemma 3), and how far two models' outputs are apart.

R replicas, B prompts, D covariates, P = D + 1 token width, X hidden width.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from icl.constructions.xie.initial_guess import block_of_yq_lsa, yq_lsa_of_block
from icl.models import LinearTransformer, LinearTransformerBlock, Parametrization, YqLSA
from icl.tasks import LinearRegressionLaw, TokenPrompt


def block_of(lsa: YqLSA) -> LinearTransformerBlock:
    """Return the block of the lemma's construction."""
    return as_block(block_of_yq_lsa(*(matrix.detach()[0, 0] for matrix in (lsa.P, lsa.Q, lsa.v[:, 0]))))


def lsa_of(block: LinearTransformerBlock) -> YqLSA:
    """Return the y_q-LSA of the converse."""
    model = YqLSA(block.dim, 1)
    matrices = yq_lsa_of_block(*(m.detach()[0, 0] for m in (block.P, block.Q, block.W1, block.W2)))
    model.load({name: matrix[None, None] for name, matrix in matrices.items()})
    return model


def wrong_blocks(lsa: YqLSA) -> list[LinearTransformerBlock]:
    """Blocks whose keys, and whose MLP, do not know the guess."""
    P_PP, Q_PP, v_D = lsa.P.detach()[0, 0], lsa.Q.detach()[0, 0], lsa.v.detach()[0, 0, 0]
    right, blind = block_of_yq_lsa(P_PP, Q_PP, v_D), block_of_yq_lsa(P_PP, Q_PP, 0 * v_D)
    return [as_block(right | {"Q": blind["Q"]}), as_block(right | {"W1": blind["W1"]})]


def as_block(matrices: dict[str, Tensor]) -> LinearTransformerBlock:
    model = LinearTransformerBlock(len(matrices["P"]) - 1, 1, len(matrices["W1"]))
    model.load({name: matrix[None, None] for name, matrix in matrices.items()})
    return model


def mlp_rank(block: LinearTransformerBlock) -> int:
    return int(torch.linalg.matrix_rank(block.W2.detach()[0, 0].mT @ block.W1.detach()[0, 0]))


def error(model: Parametrization, other: Parametrization, prompt: TokenPrompt) -> float:
    """Largest difference of their outputs, tokens and Gram path, as a share of the sizes of all terms."""
    absolute = model.sharing([torch.nn.Parameter(matrix.abs()) for matrix in model.matrices().values()])
    positive = TokenPrompt(prompt.context_RBNP.abs(), prompt.query_RBP.abs(), prompt.target_RB, 1)
    size_RB = LinearTransformer(absolute, "tokens").predict(positive)
    first_RB = LinearTransformer(model, "tokens").predict(prompt)
    others = (
        LinearTransformer(other, "tokens").predict(prompt),
        LinearTransformer(other).predict(prompt.gram()),
    )
    return float(((first_RB - torch.stack(others)) / size_RB).detach().abs().max())


def error_against_step(
    block: Parametrization, eta: float, law: LinearRegressionLaw, rng: np.random.Generator, samples: int
) -> float:
    """Largest difference of a block from one gradient step from w*, as a share of the sizes of all terms."""
    prompt = law.token_prompts([rng], samples)
    found_B = LinearTransformer(block, "tokens").predict(prompt)[0].detach()
    positive = TokenPrompt(prompt.context_RBNP.abs(), prompt.query_RBP.abs(), prompt.target_RB, 1)
    sizes = block.sharing([torch.nn.Parameter(matrix.abs()) for matrix in block.matrices().values()])
    size_B = LinearTransformer(sizes, "tokens").predict(positive)[0].detach()
    return float(((found_B - gradient_step(law.mean_RD[0], eta, prompt)).abs() / size_B).max())


def gradient_step(w_star_D: Tensor, eta: float, prompt: TokenPrompt) -> Tensor:
    """(B,): <w* - eta grad R(w*), x_q>, R(w) = 1/(2C) sum_i (<w, x_i> - y_i)^2."""
    x_BND, y_BN = prompt.context_RBNP[0, ..., :-1], prompt.context_RBNP[0, ..., -1]
    residual_BN = x_BND @ w_star_D - y_BN
    gradient_BD = (residual_BN[..., None] * x_BND).mean(1)
    return ((w_star_D - eta * gradient_BD) * prompt.query_RBP[0, :, :-1]).sum(-1)
