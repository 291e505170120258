"""Distance to a multiple of the identity, and symmetric roots of a covariance; on the last two axes."""

from __future__ import annotations

import torch
from torch import Tensor


def distance_to_identity(M: Tensor) -> Tensor:
    """Dist(M, I) = min_alpha ||M - alpha I||_F / ||M||_F of ahn section 4.3; nan where M = 0."""
    if M.ndim < 2 or M.shape[-1] != M.shape[-2]:
        raise ValueError(f"M has shape {tuple(M.shape)}: the last two axes must form a square matrix")
    alpha = M.diagonal(dim1=-2, dim2=-1).mean(-1)
    identity = torch.eye(M.shape[-1], dtype=M.dtype, device=M.device)
    off_identity = torch.linalg.matrix_norm(M - alpha[..., None, None] * identity)
    return off_identity / torch.linalg.matrix_norm(M)


def symmetric_root(Sigma: Tensor) -> Tensor:
    """Sigma^{1/2}, symmetric, for a positive semidefinite Sigma."""
    eigenvalues, U = _spectrum(Sigma)
    return (U * eigenvalues.clamp(min=0).sqrt().unsqueeze(-2)) @ U.mT


def inverse_symmetric_root(Sigma: Tensor) -> Tensor:
    """Sigma^{-1/2}, symmetric, for a positive definite Sigma."""
    eigenvalues, U = _spectrum(Sigma)
    floor = _rounding(eigenvalues)
    if bool((eigenvalues <= floor).any()):
        raise ValueError(
            f"Sigma is singular: smallest eigenvalue {float(eigenvalues.min()):.3g}, must be positive"
        )
    return (U * eigenvalues.rsqrt().unsqueeze(-2)) @ U.mT


def _spectrum(Sigma: Tensor) -> tuple[Tensor, Tensor]:
    if Sigma.ndim < 2 or Sigma.shape[-1] != Sigma.shape[-2]:
        raise ValueError(f"Sigma has shape {tuple(Sigma.shape)}: the last two axes must form a square matrix")
    if not torch.allclose(Sigma, Sigma.mT, rtol=1e-10, atol=1e-12 * float(Sigma.abs().max())):
        raise ValueError("Sigma is not symmetric")
    eigenvalues, U = torch.linalg.eigh(Sigma)
    if bool((eigenvalues < -_rounding(eigenvalues)).any()):
        raise ValueError(f"Sigma has a negative eigenvalue {float(eigenvalues.min()):.3g}")
    return eigenvalues, U


def _rounding(eigenvalues: Tensor) -> Tensor:
    """How far from zero rounding alone may move an eigenvalue."""
    epsilon = torch.finfo(eigenvalues.dtype).eps
    return eigenvalues.shape[-1] * epsilon * eigenvalues.abs().amax(-1, keepdim=True)
