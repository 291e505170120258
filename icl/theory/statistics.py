"""Estimates from independent chunks of a sample. C chunks, R replicas, K entries."""

from __future__ import annotations

import torch
from torch import Tensor


def norm_and_stderr(grad_CRK: Tensor) -> tuple[Tensor, Tensor]:
    """|E g| from C independent chunks, and its standard error (zero for one chunk, taken as exact).

    The square is the mean of <g_i, g_j> over pairs i != j, unbiased where the square of a mean is biased
    upward by the noise; its standard error s is the jackknife's. That of the root is sqrt(square + s) -
    sqrt(square): s / 2|E g| away from zero, and sqrt(s), not zero, where the gradient vanishes.
    """
    C = len(grad_CRK)
    if C == 2:
        raise ValueError("2 chunks: must be 1 or at least 3, the jackknife leaves one out")
    if C == 1:
        norm_R = grad_CRK[0].norm(dim=-1)
        return norm_R, torch.zeros_like(norm_R)
    total_RK, squares_CR = grad_CRK.sum(0), grad_CRK.square().sum(-1)
    pairs_R = total_RK.square().sum(-1) - squares_CR.sum(0)
    pairs_without_CR = (total_RK - grad_CRK).square().sum(-1) - (squares_CR.sum(0) - squares_CR)
    without_CR = pairs_without_CR / ((C - 1) * (C - 2))
    s_R = ((without_CR - without_CR.mean(0)).square().sum(0) * (C - 1) / C).sqrt()
    square_R = (pairs_R / (C * (C - 1))).clamp(min=0)
    return square_R.sqrt(), (square_R + s_R).sqrt() - square_R.sqrt()
