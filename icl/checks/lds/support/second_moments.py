"""Sizes of the terms of (26) by norms of powers, and its mean over systems in closed form.

T observations, powers 0 .. K of A.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from icl.tasks import DynamicalSystemLaw
from icl.tasks.dynamical_system import HALF_WIDTH
from icl.theory.dynamical_system import covariances_of_independent_modes

LEAST = 1e-150  # a root mean square whose square is still a number


def closed_form_error(law: DynamicalSystemLaw) -> float:
    """Compare Gauss rules with E[v^n] = 1 / (n + 1): the largest error, as a share of the sizes of the rules'
    terms, whose weights have both signs."""
    T = law.length
    exact = covariances_of_independent_modes(**law.mode_arguments())
    mean_TT = torch.einsum("q,qtu->tu", exact.weight_Q, exact.covariance_QTT)
    size_TT = torch.einsum("q,qtu->tu", exact.weight_Q.abs(), exact.covariance_QTT.abs())
    i_T = np.arange(1, T + 1)
    total = i_T[:, None] + i_T

    def moment(n: np.ndarray) -> np.ndarray:
        return np.where(n % 2 == 0, 1 / (n + 1.0), 0.0)

    steps = sum(
        np.where(np.minimum(i_T[:, None], i_T) >= k, moment(np.maximum(total - 2 * k, 0)), 0.0)
        for k in range(1, T + 1)
    )
    squared_norm = law.states * (1 if law.setting == "a" else HALF_WIDTH**2 / 3)
    closed = squared_norm * (law.initial_variance * moment(total) + law.process_noise * steps)
    closed += law.observation_noise * np.eye(T)
    return float(((mean_TT - torch.from_numpy(closed)).abs() / size_TT).max())


def sizes_of_terms(
    A_DD: Tensor, process: Tensor, start: Tensor, noise: float, initial: float, T: int
) -> Tensor:
    """Return (T, T) sizes of (26)'s terms, times the growth of an early error."""
    norm_K = norms_of_powers(A_DD, T)
    return _spread(norm_K) * _of_norms(norm_K, process, start, noise, initial)


def norms_of_powers(A_DD: Tensor, count: int) -> Tensor:
    """Return (count + 1,) |A^k|, the largest singular values."""
    powers = [torch.eye(len(A_DD), dtype=torch.float64)]
    for _ in range(count):
        powers.append(powers[-1] @ A_DD)
    return torch.linalg.matrix_norm(torch.stack(powers), 2)


def _of_norms(norm_K: Tensor, process: Tensor, start: Tensor, noise: float, initial: float) -> Tensor:
    """Return (26) of numbers in the place of matrices."""
    T = len(norm_K) - 1
    driven_TT = process * torch.outer(norm_K[:T], norm_K[:T])
    for t in range(1, T):
        driven_TT[t, 1:] += driven_TT[t - 1, :-1]
    started_TT = start * initial * torch.outer(norm_K[1:], norm_K[1:])
    return started_TT + driven_TT + noise * torch.eye(T, dtype=torch.float64)


def _spread(norm_K: Tensor) -> float:
    """Return the growth of an early error relative to the result: (|A^k| |A| |A^l| / |A^(k+l+1)|)^2 at
    most, 1 where A is symmetric."""
    T = len(norm_K) - 1
    k_T = torch.arange(T)
    whole_TT = norm_K[(k_T[:, None] + k_T + 1).clamp(max=T)]
    ratio_TT = norm_K[:T, None] * norm_K[1] * norm_K[:T] / whole_TT
    reached = (k_T[:, None] + k_T < T) & (whole_TT > LEAST)
    return float(ratio_TT[reached].max()) ** 2 if bool(reached.any()) else 1.0
