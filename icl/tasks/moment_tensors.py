"""Moments of a Gaussian vector with any mean, as tensors."""

import torch
from torch import Tensor


def moment_tensors(mean: Tensor, covariance: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """E[x], E[x x], E[x x x], E[x x x x] as dense tensors, over any leading axes; differentiable."""
    if covariance.shape[-2:] != (mean.shape[-1], mean.shape[-1]):
        raise ValueError(
            f"covariance has shape {tuple(covariance.shape)}: must end in {(mean.shape[-1],) * 2}"
        )
    second = covariance + _outer("a,b->ab", mean, mean)
    # Stein: E[x_a F] = mean_a E[F] + sum over the entries of F of their covariance with x_a.
    third = (
        _outer("a,bc->abc", mean, second)
        + _outer("ab,c->abc", covariance, mean)
        + _outer("ac,b->abc", covariance, mean)
    )
    fourth = (
        _outer("a,bce->abce", mean, third)
        + _outer("ab,ce->abce", covariance, second)
        + _outer("ac,be->abce", covariance, second)
        + _outer("ae,bc->abce", covariance, second)
    )
    return mean, second, third, fourth


def _outer(subscripts: str, left: Tensor, right: Tensor) -> Tensor:
    factors, result = subscripts.split("->")
    first, second = factors.split(",")
    return torch.einsum(f"...{first},...{second}->...{result}", left, right)
