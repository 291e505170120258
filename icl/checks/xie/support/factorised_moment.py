"""The gradient of multi-head LSA's risk with the moment that xie's A.2 has in the limit of long contexts."""

from __future__ import annotations

import numpy as np
import torch
from numpy.linalg import norm
from torch import Tensor

from icl.checks.xie.support.saturation import Saturation
from icl.theory.quadratic import LabelMoments, mean_gram


def factorised_gradient(limit: Saturation, P_HPP: Tensor, Q_HPP: Tensor) -> tuple[float, float]:
    """Take E[G] (x) E[G] for E[G (x) G]: the norm at these weights, and the least over all X (y_q = 0)."""
    D = limit.dim
    identity_DD = limit.law.Sigma_RDD[0]
    mean_PP = mean_gram(LabelMoments(identity_DD, identity_DD, limit.w_star_D, 0.0))
    m_DPP = -limit.risk.gradient(torch.zeros(D + 1, D + 1, D + 1, dtype=torch.float64))[:D] / 2
    P_HPP, Q_HPP = P_HPP.clone().requires_grad_(), Q_HPP.clone().requires_grad_()
    X_DPP = torch.einsum("hp,hrk->kpr", P_HPP[:, -1], Q_HPP[..., :D])
    products_D = (X_DPP * mean_PP).sum((-1, -2))
    wrong = products_D.square().sum() - 2 * (m_DPP * X_DPP).sum()
    gradient = torch.stack(torch.autograd.grad(wrong, (P_HPP, Q_HPP))).norm()
    along_D = (m_DPP * mean_PP).sum((-1, -2)) / mean_PP.square().sum()
    return float(gradient), float(2 * (m_DPP - along_D[:, None, None] * mean_PP).norm())


def factorised_written_out(w_star_D: Tensor, P_HPP: Tensor, Q_HPP: Tensor) -> tuple[float, float]:
    """Return the same, with M = E[G] and m_k = E[w_k G] in the limit written out for w ~ N(w*, I), and the
    gradient by the product rule: along X_k it is 2 (<X_k, M> M - m_k)."""
    w, D = w_star_D.numpy(), len(w_star_D)
    b, a = P_HPP[:, -1].numpy(), Q_HPP[..., :D].numpy()  # (H, P) and (H, P, D)
    M = np.block([[np.eye(D), w[:, None]], [w[None], np.array([[D + w @ w]])]])
    m = np.array([
        np.block([
            [w[k] * np.eye(D), (np.eye(D)[k] + w[k] * w)[:, None]],
            [(np.eye(D)[k] + w[k] * w)[None], np.array([[w[k] * (D + 2 + w @ w)]])],
        ])
        for k in range(D)
    ])  # fmt: skip
    products = np.einsum("hp,pr,hrk->k", b, M, a)
    along_X = 2 * (products[:, None, None] * M - m)
    along_b, along_a = np.einsum("kpr,hrk->hp", along_X, a), np.einsum("kpr,hp->hrk", along_X, b)
    left = m - np.einsum("kpr,pr->k", m, M)[:, None, None] / (M * M).sum() * M
    return float(norm([norm(along_b), norm(along_a)])), float(2 * norm(left))
