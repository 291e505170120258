"""One layer of linear attention at one covariance Sigma of x, w ~ N(0, I): the exact risk, its least value
over all P and Q, its gradient in them, and what rounding can do to each.

The risk is a convex quadratic form in X_k = b a_k^T, b the last row of P and a_k column k of Q: its minimum
over free symmetric X_k bounds every P and Q from below, so a point that attains it is a global minimiser.

All of it is computed for whitened tokens, z = T z' with T = [[Sigma^{1/2}, 0], [0, t]], t^2 = tr(Sigma) / D:
x' ~ N(0, I) and w' ~ N(0, Sigma / t^2), where P' = T^{-1} P T and Q' = T Q T predict 1/t of what P and Q do.
No inverse of Sigma is needed for P' Q', as only P's last row matters, and Sigma's condition drops out: the
entries G_xx have covariance of order one, and of G_xy it is (1 + 1/N) Sigma / t^2 + D/N I, at most N + 2
times worse than I.

D covariates, N = `context` tokens, P = D + 1 token width, H = 1 head.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from icl.checks.differences import gradient_norm
from icl.checks.task_rule import risk_of_layer
from icl.theory.distance import symmetric_root
from icl.theory.quadratic import EPSILON, LabelMoments, QuadraticRisk, SymmetricSpace, second_gram

SCALES = (3.0, -0.7)  # gamma of P <- gamma P, Q <- Q / gamma
GRADIENT = (
    "rounding: 2^-52 times the terms of a sum and the condition of (6)'s inverse, times the sizes of those "
    "terms for whitened tokens"
)
RISK = (
    "rounding, of the bound and at a point: |gradient / 2|^2 over the form's least eigenvalue, plus 2^-52 "
    "times the number and size of its terms"
)


MOMENTS = "moments of the prompts for all weights of a layer"


def risk_over_tasks(A_LDD: Tensor, Sigma: Tensor, Sigma_w: Tensor, context: int) -> float:
    """Return the risk of one layer of eq. (8) once more: not by words in A and Sigma, but given the task."""
    zero_D, roots = (
        torch.zeros(len(Sigma), dtype=torch.float64),
        (symmetric_root(Sigma), symmetric_root(Sigma_w)),
    )
    P_PP, Q_PP = layer_of(A_LDD[0])
    return risk_of_layer(P_PP[None], Q_PP[None], roots, context, zero_D, zero_D)


class LinearLayer:
    def __init__(self, Sigma: Tensor, context: int) -> None:
        self.Sigma, self.context, self.root_DD = Sigma, context, symmetric_root(Sigma)
        self.unit = float(Sigma.trace()) / len(Sigma)  # t^2, of risks too
        identity = torch.eye(len(Sigma), dtype=torch.float64)
        self.w_covariance = Sigma / self.unit
        self.risk = QuadraticRisk.linear_regression(identity, self.w_covariance, context)
        self.optimum = self.risk.convex_bound()
        self.least_risk = self.unit * self.optimum.value
        # Of the bound and of the risk at a point.
        self.risk_rounding = 2 * self.unit * self.optimum.rounding

    @property
    def resolved(self) -> bool:
        """G (x) G has full rank on symmetric matrices, so a lower rank found is rounding's."""
        P = len(self.Sigma) + 1
        return self.optimum.rank == (P - 1) * P * (P + 1) // 2

    def condition_by_norms(self) -> float:
        """Return the condition number of the quadratic form once more: of the form in the query, which is I,
        and of E[G (x) G] by its 2-norm and that of its inverse."""
        space = SymmetricSpace(len(self.Sigma) + 1)
        zero_D = torch.zeros(len(self.Sigma), dtype=torch.float64)
        identity = torch.eye(len(self.Sigma), dtype=torch.float64)
        moments = LabelMoments(identity, self.w_covariance, zero_D, 0.0)
        form = space.form(second_gram(moments, self.context)).numpy()
        return float(np.linalg.norm(form, 2) * np.linalg.norm(np.linalg.inv(form), 2))

    def at(self, P_PP: Tensor, Q_PP: Tensor) -> tuple[float, float]:
        """Risk, and the norm of its gradient in all of P and Q."""
        return _value_and_gradient(self._value, P_PP, Q_PP)

    def at_whitened(self, P_PP: Tensor, Q_PP: Tensor) -> tuple[float, float]:
        """Return the same for P' and Q', in units of t^2."""
        return _value_and_gradient(self._whitened_value, P_PP, Q_PP)

    def whitened_gradient(self, P_PP: Tensor, Q_PP: Tensor) -> float:
        """Norm of the gradient in P' and Q', at the P' and Q' of these weights."""
        return self.at_whitened(*self.whiten(P_PP, Q_PP))[1]

    def by_differences(self, P_PP: Tensor, Q_PP: Tensor, rng: np.random.Generator) -> float:
        """Return `whitened_gradient` once more, without autograd."""
        weights = [M.detach().requires_grad_() for M in self.whiten(P_PP, Q_PP)]
        gradients = torch.autograd.grad(self._whitened_value(*weights), weights)
        with torch.no_grad():
            return gradient_norm(self._whitened_value, weights, gradients, rng)

    def norm_by_differences(self, P_PP: Tensor, Q_PP: Tensor, rng: np.random.Generator) -> float:
        """Return the norm of the gradient in P and Q once more, without autograd."""
        weights = [M.detach().clone().requires_grad_() for M in (P_PP, Q_PP)]
        gradients = torch.autograd.grad(self._value(*weights), weights)
        with torch.no_grad():
            return gradient_norm(self._value, weights, gradients, rng)

    def whiten(self, P_PP: Tensor, Q_PP: Tensor) -> tuple[Tensor, Tensor]:
        """P' and Q'; the rows of P that do not enter are zero."""
        t = self.unit**0.5
        T_PP = torch.block_diag(self.root_DD, torch.tensor([[t]], dtype=torch.float64))
        return torch.cat([torch.zeros_like(P_PP[:-1]), P_PP[-1:] @ T_PP / t]), T_PP @ Q_PP @ T_PP

    def rescaling_change(self, P_PP: Tensor, Q_PP: Tensor) -> float:
        """Return the most by which P <- gamma P, Q <- Q / gamma changes the risk."""
        risk = self.at(P_PP, Q_PP)[0]
        return max(abs(self.at(gamma * P_PP, Q_PP / gamma)[0] - risk) for gamma in SCALES)

    def component_gradient(self, A_DD: Tensor, rng: np.random.Generator | None = None) -> float:
        """Norm of the gradient of the form in X' at X_j = -sum_k A_kj E_{d+1,k}, the query's label 0."""
        D = len(A_DD)
        X_KPP = torch.zeros(D + 1, D + 1, D + 1, dtype=torch.float64)
        X_KPP[:D, D, :D] = -(self.root_DD @ A_DD @ self.root_DD).mT
        if rng is not None:
            return gradient_norm(self.risk.value, [X_KPP], [self.risk.gradient(X_KPP)], rng)
        return float(self.risk.gradient(X_KPP).norm())

    def lemma3_gradient(self, rng: np.random.Generator | None = None) -> float:
        """Norm of the gradient of sum_j lambda_j f_j at Lemma 3's X_j, in Sigma's eigenbasis; with `rng` by
        differences along directions drawn from it."""
        eigenvalues_D, N = torch.linalg.eigvalsh(self.Sigma), self.context
        A_DD = (1 / ((N + 1) / N * eigenvalues_D + eigenvalues_D.sum() / N)).diag()
        return LinearLayer(eigenvalues_D.diag(), N).component_gradient(A_DD, rng)

    def gradient_rounding(self, A_DD: Tensor) -> float:
        """Return the rounding of gradients at A of eq. (6), in P', Q', X': 2^-52 times number and sizes of
        terms."""
        D, (P_PP, Q_PP) = len(self.Sigma), self.whiten(*layer_of(A_DD))
        size_KPP = self.risk.gradient_size(self.risk.of_layer(P_PP[None], Q_PP[None])[0])
        by_P = torch.einsum("kpr,rk->p", size_KPP, Q_PP.abs()).norm()
        by_Q = torch.einsum("kpr,p->rk", size_KPP, P_PP[-1].abs()).norm()
        terms = float(torch.stack([by_P, by_Q, size_KPP.norm()]).norm())
        summands = self.risk.longest_sum() + 2 * (D + 1) + 12  # of the form in X, of P and Q, of moments
        # |root|^2 |A| / |root A root|, that of the inverse in (6), enters with the root on each side too.
        regularised = torch.linalg.eigvalsh((self.context + 1) * self.Sigma) + self.Sigma.trace()
        return EPSILON * terms * (summands + 3 * D * float(regularised[-1] / regularised[0]))

    def _value(self, P_PP: Tensor, Q_PP: Tensor) -> Tensor:
        return self.unit * self._whitened_value(*self.whiten(P_PP, Q_PP))

    def _whitened_value(self, P_PP: Tensor, Q_PP: Tensor) -> Tensor:
        return self.risk.value_of_layer(P_PP[None], Q_PP[None])


def _value_and_gradient(
    risk: Callable[[Tensor, Tensor], Tensor], P_PP: Tensor, Q_PP: Tensor
) -> tuple[float, float]:
    leaves = P_PP.clone().requires_grad_(), Q_PP.clone().requires_grad_()
    value = risk(*leaves)
    return value.item(), torch.stack(torch.autograd.grad(value, leaves)).norm().item()


def layer_of(A_DD: Tensor) -> tuple[Tensor, Tensor]:
    """P and Q of the form (8): P = [[0, 0], [0, 1]], Q = -[[A, 0], [0, 0]]."""
    P_PP, Q_PP = torch.zeros(2, len(A_DD) + 1, len(A_DD) + 1, dtype=torch.float64)
    P_PP[-1, -1] = 1
    Q_PP[:-1, :-1] = -A_DD
    return P_PP, Q_PP


def symmetric_products(P_PP: Tensor, Q_PP: Tensor) -> Tensor:
    """Return the symmetric parts of b a_k^T, k < D: all of P and Q that enters the loss."""
    X_DPP = torch.einsum("p,rk->kpr", P_PP[-1], Q_PP[:, :-1])
    return (X_DPP + X_DPP.mT) / 2


def predictions_on_a_basis(P_PP: Tensor, Q_PP: Tensor) -> Tensor:
    """Return (S, D): predictions for queries e_k where the Gram matrix is each of an orthonormal basis."""
    space = SymmetricSpace(len(P_PP))
    basis_SPP = space.matrix(torch.eye(space.dimension, dtype=torch.float64))
    return P_PP[-1] @ basis_SPP @ Q_PP[:, :-1]
