"""One layer of linear attention: ahn's Theorem 1, eqs. (6) and (7).

D covariates, N = `context` tokens.
"""

from __future__ import annotations

import torch
from torch import Tensor

from icl.theory.distance import symmetric_root


def theorem1_preconditioner(Sigma: Tensor, context: int, Sigma_w: Tensor | None = None) -> Tensor:
    """Return A of eq. (6), Q_0 = -[[A, 0], [0, 0]]: A = ((N + 1)/N Sigma + tr(Sigma)/N I)^{-1} for w ~ N(0,
    I).

    For w ~ N(0, Sigma_w) put w = R v, R = Sigma_w^{1/2}, v ~ N(0, I): the labels are those of covariates R
    x, so A = R A' R with A' from (6) at the covariance R Sigma R. The paper states Sigma_w = I only.
    """
    check_context(context)
    if Sigma_w is not None:
        R = symmetric_root(Sigma_w)
        return R @ theorem1_preconditioner(R @ Sigma @ R, context) @ R
    trace = Sigma.diagonal(dim1=-2, dim2=-1).sum(-1)[..., None, None]
    identity = torch.eye(Sigma.shape[-1], dtype=Sigma.dtype)
    return torch.linalg.inv((context + 1) / context * Sigma + trace / context * identity)


def theorem1_risk(Sigma: Tensor, context: int, Sigma_w: Tensor | None = None) -> Tensor:
    """Least risk of one layer: sum_i lambda_i (lambda_i + tr) / ((N + 1) lambda_i + tr).

    lambda_i are the eigenvalues of Sigma_w^{1/2} Sigma Sigma_w^{1/2} and tr is their sum. At A diagonal in
    Sigma's eigenbasis the risk is sum_i lambda_i - 2 a_i lambda_i^2 + a_i^2 lambda_i^2 ((N + 1)/N lambda_i
    + tr/N).
    """
    check_context(context)
    if Sigma_w is not None:
        R = symmetric_root(Sigma_w)
        Sigma = R @ Sigma @ R
    eigenvalues = torch.linalg.eigvalsh(Sigma)
    trace = eigenvalues.sum(-1, keepdim=True)
    return (eigenvalues * (eigenvalues + trace) / ((context + 1) * eigenvalues + trace)).sum(-1)


def isotropic_step(dim: int, context: int) -> float:
    """Eq. (7): A = step I for Sigma = I, step = 1 / ((N - 1)/N + (D + 2)/N)."""
    check_sizes(dim, context)
    return 1 / ((context - 1) / context + (dim + 2) / context)


def isotropic_risk(dim: int, context: int) -> float:
    """Least risk of one layer for Sigma = Sigma_w = I: D (D + 1) / (N + D + 1)."""
    check_sizes(dim, context)
    return dim * (dim + 1) / (context + dim + 1)


def check_context(context: int) -> None:
    """Raise ValueError where there is no token."""
    if context < 1:
        raise ValueError(f"context={context}: must be at least 1")


def check_sizes(dim: int, context: int) -> None:
    """Raise ValueError where there is no token or no covariate."""
    check_context(context)
    if dim < 1:
        raise ValueError(f"dim={dim}: must be at least 1")
