"""The exact risk of one layer of ReLU attention: ahn's Theorem 5. D covariates, N = `context` tokens."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from icl.theory.closed_forms import check_sizes


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
        check_sizes(self.dim, self.context)

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
        """Return what b_0 adds, never negative: |b_0|^2 ||A||_F^2 / (2N) + (N + 3)/(4N) |A^T b_0|^2."""
        spread = b_0.square().sum(-1) * A_DD.square().sum((-1, -2)) / (2 * self.context)
        drift = (A_DD.mT @ b_0.unsqueeze(-1)).square().sum((-1, -2))
        return spread + (self.context + 3) / (4 * self.context) * drift

    def value_of_layer(self, P_PP: Tensor, Q_PP: Tensor) -> Tensor:
        """Risk of the layer (P, Q), over any leading axes; the last row of Q must be zero (Theorem 5)."""
        if bool(Q_PP[..., -1, :].any()):
            raise ValueError("the last row of Q is not zero: Theorem 5 covers Q = [[A, a], [0, 0]] only")
        return self.value(P_PP[..., -1, :], Q_PP[..., :-1, :-1])
