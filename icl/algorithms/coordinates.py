"""The input of every algorithm here: S, g and the query of a prompt, in coordinates of its choice.

In coordinates C^T x weights become C^{-1} w and every prediction <w, x> stays what it was. So descent
preconditioned by C C^T is plain descent in the coordinates C^T x, and a norm of w is a choice of C.
R replicas, B prompts, D covariates.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from icl.errors import InputError
from icl.tasks.prompts import GramPrompt, TokenPrompt


class ContextMoments(NamedTuple):
    """S = (1/N) sum x x^T, g = (1/N) sum y x, and the query's x."""

    S_RBDD: Tensor
    g_RBD: Tensor
    x_RBD: Tensor


def moments(prompt: GramPrompt | TokenPrompt, root_RDD: Tensor | None) -> ContextMoments:
    """In float64 and in the coordinates C^T x, C = `root_RDD`; None is the identity."""
    gram = (prompt.gram() if isinstance(prompt, TokenPrompt) else prompt).to(torch.float64)
    S_RBDD, g_RBD = gram.gram_RBPP[..., :-1, :-1], gram.gram_RBPP[..., -1, :-1]
    x_RBD = gram.query_RBP[..., :-1]
    if root_RDD is None:
        return ContextMoments(S_RBDD, g_RBD, x_RBD)
    R, _, D = x_RBD.shape
    if root_RDD.shape[-1] != D:
        raise InputError(f"algorithm has covariances of {root_RDD.shape[-1]} covariates, prompts have {D}")
    root_RDD = per_replica("covariances", root_RDD, R)
    return ContextMoments(
        torch.einsum("rbij,rik,rjl->rbkl", S_RBDD, root_RDD, root_RDD), g_RBD @ root_RDD, x_RBD @ root_RDD
    )


def per_replica(name: str, tensor: Tensor, R: int) -> Tensor:
    """One entry for each replica; a single entry serves all."""
    if tensor.shape[0] not in (1, R):
        raise InputError(f"algorithm has {name} for {tensor.shape[0]} replicas, prompts have {R}")
    return tensor.expand(R, *tensor.shape[1:])


def cholesky(key: str, Sigma_RDD: Tensor) -> Tensor:
    """Lower triangular L with L L^T = Sigma, in float64."""
    if Sigma_RDD.ndim != 3 or Sigma_RDD.shape[1] != Sigma_RDD.shape[2]:
        raise InputError(f"{key}: has shape {tuple(Sigma_RDD.shape)}, must have (R, D, D)")
    Sigma_RDD = Sigma_RDD.to(torch.float64)
    symmetric = torch.allclose(Sigma_RDD, Sigma_RDD.mT, rtol=1e-10, atol=1e-12 * float(Sigma_RDD.abs().max()))
    L_RDD, failed_R = torch.linalg.cholesky_ex(Sigma_RDD)
    if not symmetric or bool(failed_R.any()):
        raise InputError(f"{key}: every replica's matrix must be symmetric and positive definite")
    return L_RDD


def whitening(Sigma_RDD: Tensor | None) -> Tensor | None:
    """C with C C^T = Sigma^{-1}: C^T x has covariance I. None, the identity, for None."""
    return None if Sigma_RDD is None else torch.linalg.inv(cholesky("algorithm.Sigma", Sigma_RDD)).mT
