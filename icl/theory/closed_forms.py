"""Closed forms of ahn: Theorem 1 with eqs. (6) and (7), Theorem 5. D covariates, N = `context` tokens."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from icl.theory.distance import symmetric_root


def theorem1_preconditioner(Sigma: Tensor, context: int, Sigma_w: Tensor | None = None) -> Tensor:
    """A of eq. (6), Q_0 = -[[A, 0], [0, 0]]: A = ((N + 1)/N Sigma + tr(Sigma)/N I)^{-1} for w ~ N(0, I).

    For w ~ N(0, Sigma_w) put w = R v, R = Sigma_w^{1/2}, v ~ N(0, I): the labels are those of covariates R
    x, so A = R A' R with A' from (6) at the covariance R Sigma R. The paper states Sigma_w = I only.
    """
    _check_context(context)
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
    _check_context(context)
    if Sigma_w is not None:
        R = symmetric_root(Sigma_w)
        Sigma = R @ Sigma @ R
    eigenvalues = torch.linalg.eigvalsh(Sigma)
    trace = eigenvalues.sum(-1, keepdim=True)
    return (eigenvalues * (eigenvalues + trace) / ((context + 1) * eigenvalues + trace)).sum(-1)


def isotropic_step(dim: int, context: int) -> float:
    """Eq. (7): A = step I for Sigma = I, step = 1 / ((N - 1)/N + (D + 2)/N)."""
    _check_sizes(dim, context)
    return 1 / ((context - 1) / context + (dim + 2) / context)


def isotropic_risk(dim: int, context: int) -> float:
    """Least risk of one layer for Sigma = Sigma_w = I: D (D + 1) / (N + D + 1)."""
    _check_sizes(dim, context)
    return dim * (dim + 1) / (context + dim + 1)


@dataclass(frozen=True)
class ReluRisk:
    """Theorem 5: one layer of ReLU attention, Sigma = Sigma_w = I, Q = [[A, a], [0, 0]], b = last row of P.

    The exact risk at every such point is
        c ||b_1 A||_F^2 + b_1 tr A + D + |b_0|^2 ||A||_F^2 / (2N) + (N + 3)/(4N) |A^T b_0|^2,
        c = (2(D + 2) + N - 1) / (4N),
    with the same sign of A as in Q (the paper's Q_0 is negative). `a` drops out: the query's last entry is
    0. It is convex in b_1 A and the b_0 terms are not negative, hence the minimum below is global.
    """

    dim: int
    context: int

    def __post_init__(self) -> None:
        _check_sizes(self.dim, self.context)

    @property
    def curvature(self) -> float:
        """c of eq. (24)."""
        return (2 * (self.dim + 2) + self.context - 1) / (4 * self.context)

    @property
    def minimiser(self) -> float:
        """A = minimiser * I at b_0 = 0, b_1 = 1: -1 / ((N - 1)/(2N) + (D + 2)/N)."""
        return -1 / (0.5 * (self.context - 1) / self.context + (self.dim + 2) / self.context)

    @property
    def minimum(self) -> float:
        """D - D N / (2(D + 2) + N - 1)."""
        return self.dim - self.dim * self.context / (2 * (self.dim + 2) + self.context - 1)

    def value(self, b_P: Tensor, A_DD: Tensor) -> Tensor:
        """Risk at the last row b_P = (b_0, b_1) of P, over any leading axes; differentiable."""
        b_0, b_1 = b_P[..., :-1], b_P[..., -1]
        square = A_DD.square().sum((-1, -2))
        trace = A_DD.diagonal(dim1=-2, dim2=-1).sum(-1)
        labels = self.curvature * b_1**2 * square + b_1 * trace + self.dim
        return labels + self.covariate_term(b_0, A_DD)

    def covariate_term(self, b_0: Tensor, A_DD: Tensor) -> Tensor:
        """What b_0 adds, never negative: |b_0|^2 ||A||_F^2 / (2N) + (N + 3)/(4N) |A^T b_0|^2."""
        spread = b_0.square().sum(-1) * A_DD.square().sum((-1, -2)) / (2 * self.context)
        drift = (A_DD.mT @ b_0.unsqueeze(-1)).square().sum((-1, -2))
        return spread + (self.context + 3) / (4 * self.context) * drift

    def value_of_layer(self, P_PP: Tensor, Q_PP: Tensor) -> Tensor:
        """Risk of the layer (P, Q), over any leading axes; the last row of Q must be zero (Theorem 5)."""
        if bool(Q_PP[..., -1, :].any()):
            raise ValueError("the last row of Q is not zero: Theorem 5 covers Q = [[A, a], [0, 0]] only")
        return self.value(P_PP[..., -1, :], Q_PP[..., :-1, :-1])


def _check_context(context: int) -> None:
    if context < 1:
        raise ValueError(f"context={context}: must be at least 1")


def _check_sizes(dim: int, context: int) -> None:
    _check_context(context)
    if dim < 1:
        raise ValueError(f"dim={dim}: must be at least 1")
