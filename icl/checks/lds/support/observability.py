"""Ranks of observability matrices, and systems of the paper's settings by LAPACK. Q systems, D states."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from icl.kernel.normal import standard_normal
from icl.theory.quadratic import EPSILON


def observability(A_QDD: Tensor, c_QD: Tensor) -> Tensor:
    """Return O of eq. (5)."""
    rows = [c_QD]
    for _ in range(c_QD.shape[1] - 1):
        rows.append((rows[-1][:, None] @ A_QDD)[:, 0])
    return torch.stack(rows, 1)


def systems_off(setting: str, rng: np.random.Generator, A_QDD: Tensor, c_QD: Tensor) -> float:
    """Return the largest difference of A and c from those that LAPACK makes of the same numbers, over
    rounding.

    R's own rounding is that of M times M's condition, A's is P's times P's condition.
    """
    Q, D = c_QD.shape
    v_QD, unit = rng.uniform(-1.0, 1.0, (Q, D)), 16 * D**2 * EPSILON
    condition_Q, expected_c_QD = np.ones(Q), np.ones((Q, D))
    if setting == "a":
        P_QDD = np.broadcast_to(np.eye(D), (Q, D, D))
    else:
        draw = rng.uniform(-1.0, 1.0, (D, D, Q)) if setting == "c" else standard_normal(rng, (D, D, Q))
        M_QDD = draw.transpose(2, 0, 1)
        condition_Q = np.linalg.cond(M_QDD)
        P_QDD, R_QDD = np.linalg.qr(M_QDD)
        diagonal_QD = R_QDD[:, range(D), range(D)].copy()
        if setting == "c":
            if D > 1:
                size_QD = np.abs(diagonal_QD)
                low_Q1, high_Q1 = size_QD.min(1, keepdims=True), size_QD.max(1, keepdims=True)
                # from [low, high] to [high / 2, high]
                moved_QD = high_Q1 - (high_Q1 - size_QD) * (high_Q1 / 2) / (high_Q1 - low_Q1)
                R_QDD[:, range(D), range(D)] = np.sign(diagonal_QD) * moved_QD
                condition_Q = condition_Q * (1 + (high_Q1 / (high_Q1 - low_Q1))[:, 0])
            P_QDD = P_QDD @ R_QDD
            condition_Q = condition_Q * np.linalg.cond(P_QDD)
        else:
            P_QDD = P_QDD * np.sign(diagonal_QD)[:, None]
        expected_c_QD = rng.uniform(-5.0, 5.0, (Q, D))
    expected_QDD = np.linalg.solve(P_QDD, v_QD[..., None] * P_QDD)
    sizes_Q = unit * condition_Q * np.linalg.norm(expected_QDD, axis=(1, 2))
    shares_Q = np.linalg.norm(A_QDD.numpy() - expected_QDD, axis=(1, 2)) / sizes_Q
    off_c = float(np.abs(c_QD.numpy() - expected_c_QD).max()) / (8 * EPSILON)
    return max(float(shares_Q.max()), off_c)


def complex_systems(rng: np.random.Generator, count: int, dim: int) -> tuple[Tensor, Tensor]:
    """Return A = u G / rho(G), G and c normal, u uniform on [1/2, 1]: A and -A have one law, and most have
    complex eigenvalues."""
    G_QDD = torch.from_numpy(rng.standard_normal((count, dim, dim)))
    radius_Q = torch.linalg.eigvals(G_QDD).abs().amax(1)
    size_Q = torch.from_numpy(rng.uniform(0.5, 1.0, count)) / radius_Q
    return size_Q[:, None, None] * G_QDD, torch.from_numpy(rng.standard_normal((count, dim)))


def rank_ratio(M_QXD: Tensor) -> Tensor:
    """Return the smallest singular value over the largest, 0 where that is 0."""
    singular_QD = torch.linalg.svdvals(M_QXD)
    return torch.where(singular_QD[:, 0] > 0, singular_QD[:, -1] / singular_QD[:, 0], 0.0)


def hautus_ratio(A_QDD: Tensor, c_QD: Tensor) -> Tensor:
    """Return the least ratio of singular values of [A - v I; c^T] over the eigenvalues v, real or complex."""
    v_QD = torch.linalg.eigvals(A_QDD)
    if not v_QD.imag.any():
        v_QD = v_QD.real
    D = c_QD.shape[1]
    A_QDD, c_QD = A_QDD.to(v_QD.dtype), c_QD.to(v_QD.dtype)
    shifted_QDDD = A_QDD[:, None] - v_QD[..., None, None] * torch.eye(D, dtype=torch.float64)
    bordered = torch.cat([shifted_QDDD, c_QD[:, None, None].expand(-1, D, 1, D)], 2)
    return rank_ratio(bordered.flatten(0, 1)).view(v_QD.shape).min(1).values
