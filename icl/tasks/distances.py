"""Distances of every A and B to multiples of the identity, as ahn's section 4.3 draws them, which runs of
linear regression record; symmetric roots of a covariance.

R replicas, L layers, D covariates.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from icl.tasks.law import Model


class Distances:
    """The distances of every A and B of a model; `root_RDD` is F with F F^T = Sigma."""

    def __init__(self, root_RDD: Tensor, model: Model) -> None:
        self.root_RDD = root_RDD
        self.shapes = model.parametrization.shapes()
        self.shared = getattr(model.parametrization, "shared", False)

    def names(self) -> Sequence[str]:
        if "A" not in self.shapes:
            return []
        layers = {name: range(shape[0]) for name, shape in self.shapes.items()}
        names = ["dist_preconditioned", "dist_plain"]
        names += [f"dist_{kind}_A{i}" for kind in ("preconditioned", "plain") for i in layers["A"]]
        names += [f"dist_B{i}" for i in layers.get("B", ())]
        return [*names, "spectrum_real", "spectrum_imag"] if self.shared else names

    def at(self, model: Model) -> Mapping[str, Tensor]:
        matrices = model.parametrization.matrices()
        found = distances(matrices, self.root_RDD)
        return found | spectrum(matrices["A"], self.root_RDD) if self.shared else found


def spectrum(A_RLDD: Tensor, root_RDD: Tensor) -> dict[str, Tensor]:
    """Return the eigenvalue of the shared A in whitened coordinates that is farthest from the real line."""
    eigenvalues_RD = torch.linalg.eigvals(root_RDD.mT @ A_RLDD[:, 0] @ root_RDD)
    farthest_R1 = eigenvalues_RD.imag.argmax(1, keepdim=True)
    found_R = eigenvalues_RD.gather(1, farthest_R1)[:, 0]
    return {"spectrum_real": found_R.real, "spectrum_imag": found_R.imag}


def distances(matrices: Mapping[str, Tensor], root_RDD: Tensor) -> dict[str, Tensor]:
    """Return Dist to the sets of Theorems 3 and 4 by layer, and its maximum over A's; {} without A."""
    if "A" not in matrices:
        return {}
    A_RLDD, root_R1DD = matrices["A"], root_RDD[:, None]
    preconditioned_RL = distance_to_identity(root_R1DD.mT @ A_RLDD @ root_R1DD)
    plain_RL = distance_to_identity(A_RLDD)
    values = {"dist_preconditioned": preconditioned_RL.amax(1), "dist_plain": plain_RL.amax(1)}
    values |= {f"dist_preconditioned_A{layer}": d for layer, d in enumerate(preconditioned_RL.unbind(1))}
    values |= {f"dist_plain_A{layer}": d for layer, d in enumerate(plain_RL.unbind(1))}
    if "B" in matrices:
        plain_B_RL = distance_to_identity(matrices["B"])
        values |= {f"dist_B{layer}": d for layer, d in enumerate(plain_B_RL.unbind(1))}
    return values


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
