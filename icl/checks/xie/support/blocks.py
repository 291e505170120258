"""y_q-LSA as a linear transformer block and back (xie, Lemma 3), and how far two models' outputs are apart.

R replicas, B prompts, D covariates, P = D + 1 token width, X hidden width.
"""

from __future__ import annotations

import torch
from torch import Tensor

from icl.constructions.xie.initial_guess import block_of_yq_lsa, yq_lsa_of_block
from icl.models import LinearTransformer, LinearTransformerBlock, Parametrization, YqLSA
from icl.tasks import TokenPrompt


def block_of(lsa: YqLSA) -> LinearTransformerBlock:
    """The construction of the lemma."""
    return as_block(block_of_yq_lsa(*(matrix.detach()[0, 0] for matrix in (lsa.P, lsa.Q, lsa.v[:, 0]))))


def lsa_of(block: LinearTransformerBlock) -> YqLSA:
    """The converse."""
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
