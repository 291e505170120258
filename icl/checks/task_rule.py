"""The risk of one layer of linear attention once more: exact given the task, and a rule over the tasks.

Given w the tokens (x, <w, x>) are Gaussian, so that mean and covariance of every <G, Y> are known
(Isserlis), and the risk is a polynomial of degree 4 in w. Its mean is that of the fifth-degree rule of
McNamee and Stenger (Numer. Math. 10, 1967), 2 d^2 + 1 points; icl.theory.quadratic takes moments of w.

V tasks, D covariates, N context tokens, P = K = D + 1 token width, H heads.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from icl.tasks import LinearRegressionLaw

BY_TASKS = "the risk given the task, by a fifth-degree rule over tasks"


def risk_by_tasks(
    law: LinearRegressionLaw, P_HPP: Tensor, Q_HPP: Tensor, guess_D: Tensor | None = None
) -> float:
    """Return the risk of a layer under a law of one seed, labels without noise; with `guess_D` the guess is
    <guess_D, x_q>, and not the law's."""
    if guess_D is not None:
        law = replace(law, guess_RD=guess_D[None], guess_bias=0.0)
    roots = law.root_RDD[0], law.task_root_RDD[0]
    about = law.mean_RD[0], law.guess_RD[0], law.guess_bias, law.read_out
    return risk_of_layer(P_HPP, Q_HPP, roots, law.context_R[0], *about)


def risk_of_layer(
    P_HPP: Tensor,
    Q_HPP: Tensor,
    roots: tuple[Tensor, Tensor],
    context: int,
    mean_D: Tensor,
    v_D: Tensor,
    bias: float = 0.0,
    read_out: int = -1,
) -> float:
    """Return the same by the roots of the covariances of x and w, the mean of w and the guess
    <v, x_q> + bias."""
    D, N, (root_DD, task_root_DD) = len(mean_D), context, roots
    X_KPP = torch.einsum("hp,hrk->kpr", P_HPP[:, -1], Q_HPP)
    X_KPP = (X_KPP + X_KPP.mT) / 2
    # the error is sum_i u_i (g_i + <G, Y_i>) + b (1 + <G, X_p>), x_q = root u
    Y_KPP = torch.cat([X_KPP[:-1] + v_D[:, None, None] * X_KPP[-1], bias * X_KPP[-1:]])
    turn_KK = torch.block_diag(root_DD, torch.ones(1, 1, dtype=torch.float64))
    Y_KPP = torch.einsum("ki,kpr->ipr", turn_KK, Y_KPP)
    # <G, Y_k> = <S, A_k + p_k r^T + r p_k^T + s_k r r^T> of white x, r = root w
    A_KDD, p_KD, s_K = root_DD.mT @ Y_KPP[:, :D, :D] @ root_DD, Y_KPP[:, :D, D] @ root_DD, Y_KPP[:, D, D]
    nodes_VD, weights_V = _rule(D)
    w_VD = mean_D + nodes_VD @ task_root_DD.mT
    r_VD, along_VK = w_VD @ root_DD, w_VD @ root_DD @ p_KD.T
    square_V = r_VD.square().sum(1)
    mean_VK = A_KDD.diagonal(dim1=1, dim2=2).sum(1) + 2 * along_VK + square_V[:, None] * s_K
    mean_VK[:, :D] += (v_D - read_out * w_VD) @ root_DD
    mean_VK[:, D] += bias
    squares_V = (  # sums over k of |A_k + p_k r^T + r p_k^T + s_k r r^T|^2
        A_KDD.square().sum()
        + 4 * r_VD @ torch.einsum("kij,kj->i", A_KDD, p_KD)
        + 2 * torch.einsum("vi,ij,vj->v", r_VD, torch.einsum("k,kij->ij", s_K, A_KDD), r_VD)
        + 2 * square_V * p_KD.square().sum()
        + 2 * along_VK.square().sum(1)
        + 4 * square_V * (along_VK @ s_K)
        + square_V**2 * s_K.square().sum()
    )
    return float(weights_V @ (mean_VK.square().sum(1) + 2 / N * squares_V))


def _rule(dim: int) -> tuple[Tensor, Tensor]:
    """Return points and weights with the moments of N(0, I) to degree 5."""
    axes, far = np.eye(dim), 3**0.5
    first, second = np.triu_indices(dim, 1)
    pairs = [sign * axes[first] + other * axes[second] for sign in (1, -1) for other in (1, -1)]
    points = np.concatenate([np.zeros((1, dim)), far * axes, -far * axes, *(far * pair for pair in pairs)])
    weights = np.full(len(points), 1 / 36)
    weights[0], weights[1 : 2 * dim + 1] = (dim**2 - 7 * dim + 18) / 18, (4 - dim) / 18
    return torch.from_numpy(points), torch.from_numpy(weights)
