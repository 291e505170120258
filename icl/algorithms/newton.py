"""Newton's iteration for the inverse of a matrix, of any order: giannou, eqs. (3.3) and (3.4)."""

import torch
from torch import Tensor

from icl.errors import InputError, whole


def newton_iteration(A_DD: Tensor, X_DD: Tensor, order: int, steps: int) -> list[Tensor]:
    """X_0 .. X_steps by eq. (3.4), for which I - X_{t+1} A = (I - X_t A)^order. Leading axes are a batch.

    (3.4) is X_{t+1} = X_t sum_{m < order} (I - A X_t)^m with the powers of I - A X_t multiplied out; it is
    evaluated here by Horner's rule in the residual, whose terms do not cancel.
    """
    whole("algorithm.order", order, 2)
    iterates = [X_DD.to(torch.float64)]
    identity_DD = torch.eye(A_DD.shape[-1], dtype=torch.float64)
    for _ in range(whole("algorithm.steps", steps, 0)):
        X_DD = iterates[-1]
        residual_DD = identity_DD - A_DD @ X_DD
        sum_DD = identity_DD
        for _ in range(order - 1):
            sum_DD = identity_DD + residual_DD @ sum_DD
        iterates.append(X_DD @ sum_DD)
    return iterates


def transpose_start(A_DD: Tensor) -> Tensor:
    """X_0 = A^T / (s_1^2 + s_D^2), the authors' start, for singular values s_1 >= .. >= s_D.

    The residual I - X_0 A has the eigenvalues 1 - s^2 / (s_1^2 + s_D^2). Twice as much would have the least
    spectral radius of all multiples of A^T.
    """
    s_D = torch.linalg.svdvals(A_DD.to(torch.float64))
    scale = s_D[..., 0] ** 2 + s_D[..., -1] ** 2
    if not bool((scale > 0).all()):
        raise InputError("algorithm: A is zero, it has no inverse to iterate to")
    return A_DD.mT.to(torch.float64) / scale[..., None, None]
