"""Logistic losses that are wrong in one place."""

from icl.theory.logistic import LogisticLoss
from tests.checks.asking import Mutant


def more_points(right, loss, x_BD):
    """Return the loss with the curvature divided by N + 1."""
    N, ridge_BDD = loss.A_BND.shape[1], right(LogisticLoss(0 * loss.A_BND, loss.y_BN, loss.mu), x_BD)
    return (right(loss, x_BD) - ridge_BDD) * N / (N + 1) + ridge_BDD


def damped_as_if_standard(right, loss, x_BD, gradient_BD=None):
    """Return 1 / (1 + lambda_f), the damping of a function that is standard self-concordant itself."""
    direction_BD, lambda_B = loss.newton_direction(x_BD, gradient_BD)
    return x_BD - direction_BD / (1 + lambda_B)[:, None]


def wrong_losses(of: str, verdict: str = "fails") -> list[Mutant]:
    return [
        Mutant(LogisticLoss, name, wrong, verdict, "" if name == "value" else of)
        for name, wrong in (
            ("value", lambda right, loss, x_BD: right(loss, x_BD) - loss.mu / 4 * x_BD.square().sum(-1)),
            ("gradient", lambda right, loss, x_BD: right(loss, x_BD) * (1 + 1e-9)),
            ("hessian", more_points),
            ("newton_direction", lambda right, *of: (right(*of)[0], 0.99 * right(*of)[1])),
            ("damped_step", damped_as_if_standard),
        )
    ]
