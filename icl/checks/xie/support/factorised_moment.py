"""The gradient of multi-head LSA's risk with the moment that xie's A.2 has in the limit of long contexts."""

from __future__ import annotations

import torch
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
