"""The preconditioner of the best single layer, eq. (6) of ahn: its distance from Sigma^{-1}, its gradient.

D covariates, N = `context` tokens.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from icl.checks.differences import gradient_norm
from icl.theory.closed_forms import theorem1_preconditioner
from icl.theory.distance import symmetric_root
from icl.theory.expected_traces import sparse_a_risk

DIFFERENCE = "rounding: 64 eps times the condition number of Sigma, of a difference of numbers below 1"
GRADIENT = "rounding: 64 eps times the condition number of Sigma, as a share of the gradient at A = 0"


def distance_as_difference(
    Sigma: Tensor, preconditioner: Callable[[Tensor, int], Tensor], context: int
) -> float:
    """||Sigma^{1/2} A Sigma^{1/2} - I||_2 as a difference, which loses the digits of a small one."""
    root_DD, identity_DD = symmetric_root(Sigma), torch.eye(len(Sigma), dtype=torch.float64)
    A_DD = preconditioner(Sigma, context)
    return float(torch.linalg.matrix_norm(root_DD @ A_DD @ root_DD - identity_DD, 2))


def relative_gradient(Sigma: Tensor, context: int) -> float:
    """Return the gradient of the exact risk of eq. (8) in A at (6), as a share of that at A = 0."""
    identity_DD, zero_DD = torch.eye(len(Sigma), dtype=torch.float64), torch.zeros_like(Sigma)
    norms = []
    for A_DD in (theorem1_preconditioner(Sigma, context), zero_DD):
        A_LDD = A_DD[None].clone().requires_grad_()
        risk = sparse_a_risk(A_LDD, Sigma, identity_DD, context)
        norms.append(float(torch.autograd.grad(risk, A_LDD)[0].norm()))
    return norms[0] / norms[1]


def by_differences(Sigma: Tensor, context: int, rng: np.random.Generator) -> float:
    """Return the same by differences of the risk's values."""
    identity_DD, zero_DD = torch.eye(len(Sigma), dtype=torch.float64), torch.zeros_like(Sigma)

    def risk(A_DD: Tensor) -> Tensor:
        return sparse_a_risk(A_DD[None], Sigma, identity_DD, context)

    norms = []
    for A_DD in (theorem1_preconditioner(Sigma, context), zero_DD):
        leaf = A_DD.clone().requires_grad_()
        slope = torch.autograd.grad(risk(leaf), leaf)
        norms.append(gradient_norm(risk, [A_DD], slope, rng, step=float(A_DD.norm()) or 1.0))
    return norms[0] / norms[1]


def context_times_distance(eigenvalues_D: Tensor, context: int) -> float:
    """N ||I - Sigma^{1/2} A Sigma^{1/2}||_2 = max_i a_i (lambda_i + tr(Sigma)), a few bits from exact."""
    a_D = theorem1_preconditioner(eigenvalues_D.diag(), context).diagonal()
    return float((a_D * (eigenvalues_D + eigenvalues_D.sum())).max())


def trace_undivided(Sigma: Tensor, context: int) -> Tensor:
    return torch.linalg.inv((context + 1) / context * Sigma + Sigma.trace() * torch.eye(len(Sigma)).double())
