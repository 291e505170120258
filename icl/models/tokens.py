"""Attention over the tokens themselves: any activation, cost proportional to the context.

R replicas, B prompts, N context tokens (M = N + 1 with the query), P token width, L layers, H heads.
"""

import torch
from torch import Tensor

ACTIVATIONS = ("identity", "relu", "softmax")


def stack_forward(
    P_RLHPP: Tensor,
    Q_RLHPP: Tensor,
    context_RBNP: Tensor,
    query_RBP: Tensor,
    activation: str = "identity",
    mask: bool = True,
) -> Tensor:
    """Return the query token after every layer of Z <- Z + (1/n) sum_h P_h Z M sigma(Z^T Q_h Z), eqs.
    (2)-(4).

    Softmax normalises over all N + 1 keys before the mask, as (2) has it, and takes no further 1/n. Without
    a mask (M = I, giannou's eq. (3.1a)) the query attends to itself; the sum is still divided by n.
    """
    N = context_RBNP.shape[2]
    keys = N if mask else N + 1
    z_RBMP = torch.cat([context_RBNP, query_RBP[:, :, None]], dim=2)
    for layer in range(P_RLHPP.shape[1]):
        update_RBMP = torch.zeros_like(z_RBMP)
        for h in range(P_RLHPP.shape[2]):
            scores_RBMM = z_RBMP @ Q_RLHPP[:, None, layer, h].mT @ z_RBMP.mT  # [i, j] = z_j^T Q z_i
            weights_RBMN = _activate(scores_RBMM, activation)[..., :keys]
            values_RBNP = z_RBMP[:, :, :keys] @ P_RLHPP[:, None, layer, h].mT
            update_RBMP = update_RBMP + weights_RBMN @ values_RBNP
        z_RBMP = z_RBMP + (update_RBMP if activation == "softmax" else update_RBMP / N)
    return z_RBMP[:, :, -1]


def _activate(scores: Tensor, activation: str) -> Tensor:
    if activation == "identity":
        return scores
    return torch.relu(scores) if activation == "relu" else torch.softmax(scores, dim=-1)
