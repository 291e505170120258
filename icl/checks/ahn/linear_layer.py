"""One layer of linear attention at one covariance Sigma of x, w ~ N(0, I): the exact risk, its least value
over all P and Q, its gradient in them, and what rounding can do to each.

The risk is a convex quadratic form in X_k = b a_k^T, b the last row of P and a_k column k of Q: its minimum
over free symmetric X_k bounds every P and Q from below, so a point that attains it is a global minimiser.

D covariates, N = `context` tokens, P = D + 1 token width, H = 1 head.
"""

from __future__ import annotations

import torch
from torch import Tensor

from icl.theory.quadratic import EPSILON, QuadraticRisk

SCALES = (3.0, -0.7)  # gamma of P <- gamma P, Q <- Q / gamma


class LinearLayer:
    def __init__(self, Sigma: Tensor, context: int) -> None:
        self.Sigma, self.context = Sigma, context
        w_covariance = torch.eye(len(Sigma), dtype=torch.float64)
        self.risk = QuadraticRisk.linear_regression(Sigma, w_covariance, context)
        self.optimum = self.risk.convex_bound()
        self.risk_rounding = 2 * self.optimum.rounding  # of the bound and of the risk at a point

    @property
    def resolved(self) -> bool:
        """G (x) G has full rank on symmetric matrices, so a lower rank found is rounding's."""
        P = len(self.Sigma) + 1
        return self.optimum.rank == (P - 1) * P * (P + 1) // 2

    def at(self, P_PP: Tensor, Q_PP: Tensor) -> tuple[float, float]:
        """Risk, and the norm of its gradient in all of P and Q."""
        P_HPP, Q_HPP = P_PP[None].clone().requires_grad_(), Q_PP[None].clone().requires_grad_()
        risk = self.risk.value_of_layer(P_HPP, Q_HPP)
        gradients = torch.autograd.grad(risk, (P_HPP, Q_HPP))
        return risk.item(), torch.stack(gradients).norm().item()

    def rescaling_change(self, P_PP: Tensor, Q_PP: Tensor) -> float:
        """The most by which P <- gamma P, Q <- Q / gamma changes the risk."""
        risk = self.at(P_PP, Q_PP)[0]
        return max(abs(self.at(gamma * P_PP, Q_PP / gamma)[0] - risk) for gamma in SCALES)

    def component_gradient(self, A_DD: Tensor) -> float:
        """Norm of the gradient of the form in X at X_j = -sum_k A_kj E_{d+1,k}, the query's label being 0."""
        D = len(A_DD)
        X_KPP = torch.zeros(D + 1, D + 1, D + 1, dtype=torch.float64)
        X_KPP[:D, D, :D] = -A_DD.mT
        return float(self.risk.gradient(X_KPP).norm())

    def gradient_rounding(self, A_DD: Tensor) -> float:
        """Of the gradient's norm at A of eq. (6): 2^-52 times the number and size of its terms."""
        D, N, Sigma = len(self.Sigma), self.context, self.Sigma
        trace, square = float(Sigma.trace()), float(Sigma.square().sum())
        # E|G|^2 = E|C|^2 + (E|C|^2 + E tr(C)^2) / N, C = [[Sigma, Sigma w], [., w^T Sigma w]], w ~ N(0, I).
        square_G = (5 * square + trace**2) * (1 + 1 / N) + (4 * trace**2 + 2 * square) / N
        norm_X = float(A_DD.norm())
        terms = 2 * trace * square_G * norm_X * (1 + norm_X)
        P = D + 1
        summands = P + P * (P + 1) // 2 + D * D  # of the form in X, and of its moments' assembly
        regularised = torch.linalg.eigvalsh((N + 1) * Sigma) + trace
        return EPSILON * terms * (summands + D * float(regularised[-1] / regularised[0]))


def layer_of(A_DD: Tensor) -> tuple[Tensor, Tensor]:
    """P and Q of the form (8): P = [[0, 0], [0, 1]], Q = -[[A, 0], [0, 0]]."""
    P_PP, Q_PP = torch.zeros(2, len(A_DD) + 1, len(A_DD) + 1, dtype=torch.float64)
    P_PP[-1, -1] = 1
    Q_PP[:-1, :-1] = -A_DD
    return P_PP, Q_PP


def symmetric_products(P_PP: Tensor, Q_PP: Tensor) -> Tensor:
    """The symmetric parts of b a_k^T, k < D: all of P and Q that enters the loss."""
    X_DPP = torch.einsum("p,rk->kpr", P_PP[-1], Q_PP[:, :-1])
    return (X_DPP + X_DPP.mT) / 2
