"""Proof, by eigenvalues, that every head with b on two free entries has a risk above a level.

E entries of a_KP.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
import torch
from torch import Tensor

from icl.checks.lds.support.population import Population
from icl.theory.dynamical_system import coefficients
from icl.theory.quadratic import EPSILON


def all_heads_above(population: Population, free_P: Tensor, level: float, margin: float) -> bool:
    """Return whether every head with b on the free entries has a risk above the level, beyond rounding:
    False where it is not known."""
    places = free_P.nonzero().flatten().tolist()
    if margin <= 0 or len(places) > 2:
        return False
    part, P, window = population.moments, population.law.window + 1, population.law.window
    entry_PP, A_KPKP = torch.eye(P, dtype=torch.float64), torch.eye(window * P, dtype=torch.float64)
    heads = A_KPKP.view(-1, window, P)
    # Columns of x for b = e_m and each entry of a.
    design_XE = [
        torch.stack([coefficients(entry_PP[m], a_KP).flatten() for a_KP in heads], 1) for m in places
    ]
    form_EE = part.form_KSKS.reshape(len(design_XE[0]), -1)
    corner = float(part.constant) - 2 * level
    square = [[one.T @ form_EE @ two for two in design_XE] for one in design_XE]
    linear = [one.T @ part.linear_KS.flatten() for one in design_XE]
    if len(places) == 1:
        least = corner - float(linear[0] @ torch.linalg.solve(square[0][0], linear[0]))
        return least > 0
    # In coordinates where A(1, 0) + A(0, 1) = 1 and c = 1 at a level of 0, all entries are of size 1.
    root = torch.linalg.cholesky(square[0][0] + square[1][1])
    scale = float(part.constant) ** 0.5
    (A0, A01), (A10, A2) = (
        [torch.linalg.solve_triangular(root, M, upper=False) for M in row] for row in square
    )
    A0, A1, A2 = (torch.linalg.solve_triangular(root, M.T, upper=False).T for M in (A0, A01 + A10, A2))
    h0, h1 = (torch.linalg.solve_triangular(root, h[:, None], upper=False) / scale for h in linear)
    if _least_over_keys(A2, h1, corner / scale**2) <= 0:  # y / x infinite
        return False
    zero_E1, zero = torch.zeros_like(h0), torch.zeros(1, 1, dtype=torch.float64)
    M0, M1, M2 = (
        torch.cat([torch.cat([A, h], 1), torch.cat([h.T, c], 1)])
        for A, h, c in ((A0, h0, zero + corner / scale**2), (A1, h1, zero), (A2, zero_E1, zero))
    )
    E = len(M0)
    eye, nought = torch.eye(E, dtype=torch.float64), torch.zeros(E, E, dtype=torch.float64)
    left = torch.cat([torch.cat([nought, eye], 1), torch.cat([-M0, -M1], 1)])
    right = torch.block_diag(eye, M2)
    alpha, beta = scipy.linalg.eig(left.numpy(), right.numpy(), right=False, homogeneous_eigvals=True)
    finite = np.abs(beta) > EPSILON * E * np.abs(alpha)
    real = np.imag(alpha[finite] / beta[finite]) == 0
    # Eigenvalues are those of matrices changed by some E 2^-52: the level by as much times 1 + |a|^2.
    angle = np.linspace(0, np.pi, 257)
    keys = [
        torch.linalg.solve(x * x * A0 + x * y * A1 + y * y * A2, x * h0 + y * h1).square().sum()
        for x, y in zip(np.cos(angle), np.sin(angle), strict=True)
    ]
    rounding = 64 * EPSILON * E * (1 + float(max(keys))) * scale**2
    return not bool(real.any()) and margin / 2 > rounding


def _least_over_keys(A_EE: Tensor, h_E1: Tensor, corner: float) -> float:
    return corner - float((h_E1.T @ torch.linalg.solve(A_EE, h_E1)).squeeze())
