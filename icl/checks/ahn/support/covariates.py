"""Measurements of how the covariates move on S of eq. (11): by formula, on tokens, and their
condition numbers.

A_l = -a_l Sigma^{-1}, B_l = b_l I, beta_l = a_l b_l. B prompts, L layers, D covariates.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from icl.checks import attention
from icl.checks.ahn.support.critical_set import Point
from icl.checks.rounding import path_rounding
from icl.models.parametrizations import sparse_stack

TOKENS = 32  # prompts on which attention itself is compared


def error_on_tokens(point: Point, rng: np.random.Generator) -> tuple[float, float]:
    """Largest difference of the covariates of any token after any layer from those of observation 1, and
    what rounding makes of it."""
    law, layers = point.law, len(point.a_L)
    Z_BPM = attention.tokens_of(law.token_prompts([rng], TOKENS))
    inverse_DD, identity_DD = torch.linalg.inv(law.Sigma_RDD[0]), torch.eye(law.dim, dtype=torch.float64)
    A_LDD = -torch.from_numpy(point.a_L)[:, None, None] * inverse_DD
    B_LDD = torch.from_numpy(np.append(point.b_L, 0.0))[:, None, None] * identity_DD
    P_LPP, Q_LPP = (stack[0, :, 0] for stack in sparse_stack(A_LDD[None], B_LDD[None]))
    found_LBPM = attention.every_layer(P_LPP, Q_LPP, Z_BPM)
    sizes_LBPM = attention.every_layer(P_LPP.abs(), Q_LPP.abs(), Z_BPM.abs())
    expected_LBDM = observed(point.beta_L, inverse_DD, Z_BPM[:, :-1])
    error = ((found_LBPM[:-1, :, :-1] - expected_LBDM).abs() / sizes_LBPM[:-1, :, :-1]).max()
    operations = 4 * attention.stack_operations(law.dim, law.context_R[0], layers)
    return float(error), path_rounding(operations)


def better_conditioned(beta_L: Sequence[float] | np.ndarray, s_BD: Tensor) -> tuple[float, list[float]]:
    """Return the least share, over the layers, of prompts on which X_(l+1) is better conditioned than X_l;
    the median condition number of every X_l X_l^T, X_0 first."""
    p_BD, conditions = torch.ones_like(s_BD), []
    for beta in (*beta_L, 0.0):
        moved_BD = s_BD * p_BD.square()
        conditions.append(moved_BD.amax(1) / moved_BD.amin(1))
        p_BD = p_BD * (1 - beta * moved_BD)
    return (
        min(float((after < before).double().mean()) for before, after in pairwise(conditions)),
        [float(condition_B.median()) for condition_B in conditions],
    )


def observed(beta_L: Sequence[float] | np.ndarray, inverse_DD: Tensor, X_BDM: Tensor) -> Tensor:
    """(L - 1, B, D, M): X <- X (I - |a b| M X^T Sigma^{-1} X / N), token by token."""
    N, layers = X_BDM.shape[-1] - 1, []
    for beta in beta_L:
        scores_BNM = X_BDM[..., :N].mT @ inverse_DD @ X_BDM
        X_BDM = X_BDM - abs(beta) / N * X_BDM[..., :N] @ scores_BNM
        layers.append(X_BDM)
    return torch.stack(layers)
