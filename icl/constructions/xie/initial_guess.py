"""Weights of the xie paper: one step of gradient descent, the saturated model, and LTB against y_q-LSA.

D covariates, P = D + 1 token width, K query entries, H heads. Everything is one layer; a head enters its
prediction through b_h, the last row of P_h, and a_hk, column k of Q_h.
"""

from __future__ import annotations

import torch
from torch import Tensor


def one_step_gd(w_star_D: Tensor, eta: float) -> tuple[Tensor, Tensor]:
    """Eq. (7): (P, Q) whose layer moves the query's y by eta / C sum_i (y_i - <w*, x_i>) <x_i, x_q>.

    With y_q = <w*, x_q> that is eq. (10), one step of gradient descent from w* on 1/(2C) sum (y - <w, x>)^2.
    """
    D = len(w_star_D)
    P_PP, Q_PP = torch.zeros(2, D + 1, D + 1, dtype=torch.float64)
    P_PP[D, :D], P_PP[D, D] = -eta * w_star_D, eta
    Q_PP[:D, :D] = torch.eye(D)
    return P_PP, Q_PP


def heads_of_matrices(X_KPP: Tensor) -> tuple[Tensor, Tensor]:
    """D heads (P_HPP, Q_HPP) with sym(sum_h b_h a_hk^T) = X_k, for symmetric X_k of corner zero.

    b_h = e_h, a_hk = row h of X_k with its last entry doubled: no row for y is needed, which is why D heads
    do what the proof of Theorem 1 does with D + 1.
    """
    K, P, _ = X_KPP.shape
    if float(X_KPP[:, -1, -1].abs().max()) > 0:
        raise ValueError("X_k: the last diagonal entry must be zero")
    a_HKP = X_KPP[:, :-1].transpose(0, 1).clone()
    a_HKP[..., -1] *= 2
    P_HPP = torch.zeros(P - 1, P, P, dtype=X_KPP.dtype)
    P_HPP[:, -1, :-1] = torch.eye(P - 1, dtype=X_KPP.dtype)
    Q_HPP = torch.zeros(P - 1, P, P, dtype=X_KPP.dtype)
    Q_HPP[:, :, :K] = a_HKP.mT
    return P_HPP, Q_HPP


def block_of_yq_lsa(P_PP: Tensor, Q_PP: Tensor, v_D: Tensor) -> dict[str, Tensor]:
    """Lemma 3: the weights of eq. (30) that compute what y_q-LSA computes; one hidden unit is enough.

    The MLP's row is (v, 1): it adds <v, x_q> after the attention, whose output must then come last and whose
    keys take x_q with its guess.
    """
    one = torch.ones(1, dtype=v_D.dtype)
    W1_1P = torch.cat([v_D, one])[None]
    value_PP = torch.zeros_like(P_PP)
    value_PP[-1] = P_PP[-1]
    key_PP = Q_PP.clone()
    key_PP[:, :-1] += torch.outer(Q_PP[:, -1], v_D)  # y_q = <v, x_q> read through x_q itself
    key_PP[:, -1] = 0
    return {"P": value_PP, "Q": key_PP, "W1": W1_1P, "W2": torch.nn.functional.pad(one[None], (len(v_D), 0))}


def yq_lsa_of_block(P_PP: Tensor, Q_PP: Tensor, W1_XP: Tensor, W2_XP: Tensor) -> dict[str, Tensor]:
    """Return, conversely, y_q-LSA weights for any LTB weights, whatever the MLP's width.

    The guess is the first D entries of the last row of W2^T W1; that row times P is the row that counts.
    """
    row_P = W2_XP[:, -1] @ W1_XP
    value_PP = torch.zeros_like(P_PP)
    value_PP[-1] = row_P @ P_PP
    key_PP = Q_PP.clone()
    key_PP[:, -1] = 0  # LTB's query token ends in zero
    return {"P": value_PP, "Q": key_PP, "v": row_P[None, :-1]}
