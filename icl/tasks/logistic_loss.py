"""The regularised logistic loss of giannou, eq. (3.5), and its minimum by damped Newton steps.

f(x) = 1/N sum_i log(1 + exp(-y_i <x, a_i>)) + mu/2 |x|^2, y_i = +-1.
B problems at once, N points, D covariates.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class LogisticLoss:
    """B problems with their own points and one mu."""

    A_BND: Tensor
    y_BN: Tensor
    mu: float

    def __post_init__(self) -> None:
        if not self.mu > 0:
            raise ValueError(f"mu={self.mu}: must be above 0")
        if self.A_BND.ndim != 3 or self.y_BN.shape != self.A_BND.shape[:2]:
            raise ValueError(f"A {tuple(self.A_BND.shape)} and y {tuple(self.y_BN.shape)}: (B, N, D), (B, N)")
        if not bool((self.y_BN.abs() == 1).all()):
            raise ValueError("labels must be 1 or -1")

    def margins(self, x_BD: Tensor) -> Tensor:
        return self.y_BN * (self.A_BND @ x_BD[..., None])[..., 0]

    def value(self, x_BD: Tensor) -> Tensor:
        # softplus would leave 2e-9 out for margins below -20
        losses_BN = -torch.nn.functional.logsigmoid(self.margins(x_BD))
        return losses_BN.mean(-1) + self.mu / 2 * x_BD.square().sum(-1)

    def gradient(self, x_BD: Tensor) -> Tensor:
        """-1/N sum_i y_i p_i a_i + mu x, p_i = sigma(-y_i <x, a_i>)."""
        signed_BN = self.y_BN * torch.sigmoid(-self.margins(x_BD))
        return self.mu * x_BD - (signed_BN[:, None] @ self.A_BND)[:, 0] / self.A_BND.shape[1]

    def hessian(self, x_BD: Tensor) -> Tensor:
        """1/N A^T D A + mu I, D = diag(p_i (1 - p_i))."""
        margins_BN = self.margins(x_BD)
        d_BN = torch.sigmoid(margins_BN) * torch.sigmoid(-margins_BN)
        curvature_BDD = self.A_BND.mT @ (d_BN[..., None] * self.A_BND) / self.A_BND.shape[1]
        return curvature_BDD + self.mu * torch.eye(x_BD.shape[-1], dtype=x_BD.dtype)

    def damped_step(self, x_BD: Tensor, gradient_BD: Tensor | None = None) -> Tensor:
        """x - 2 sqrt(mu) / (2 sqrt(mu) + lambda_f) H^{-1} grad f: the damped step of g = f / (4 mu).

        lambda_f = sqrt(grad f^T H^{-1} grad f) is Newton's decrement.
        """
        gradient_BD = self.gradient(x_BD) if gradient_BD is None else gradient_BD
        root_BDD = torch.linalg.cholesky(self.hessian(x_BD))
        direction_BD = torch.cholesky_solve(gradient_BD[..., None], root_BDD)[..., 0]
        lambda_B = (gradient_BD * direction_BD).sum(-1).clamp_min(0).sqrt()
        damping_B = 2 * self.mu**0.5 / (2 * self.mu**0.5 + lambda_B)
        return x_BD - damping_B[:, None] * direction_BD


@dataclass(frozen=True, eq=False)
class LogisticMinimum:
    """The point where an iteration stopped: x, the gradient's norm there, the steps it took, problem by
    problem."""

    x_BD: Tensor
    gradient_B: Tensor
    steps_B: Tensor


def damped_newton(
    loss: LogisticLoss, x_BD: Tensor, tolerance: float = 1e-12, most: int = 200
) -> LogisticMinimum:
    """Damped Newton steps until |grad f| <= tolerance, each problem for itself, at most `most`."""
    steps_B = torch.zeros(len(x_BD), dtype=torch.int64)
    gradient_BD = loss.gradient(x_BD)
    for _ in range(most):
        left_B = gradient_BD.norm(dim=-1) > tolerance
        if not bool(left_B.any()):
            break
        x_BD = torch.where(left_B[:, None], loss.damped_step(x_BD, gradient_BD), x_BD)
        steps_B += left_B
        gradient_BD = loss.gradient(x_BD)
    return LogisticMinimum(x_BD, gradient_BD.norm(dim=-1), steps_B)
