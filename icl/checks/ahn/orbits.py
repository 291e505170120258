"""Is the gradient of the risk a multiple of Sigma for every A_l and of I for every B_l? w ~ N(0, Sigma^{-1}).

In whitened coordinates, x = root u, both are multiples of I. Asked without sampling error on the orbit of
one drawn prompt under a finite group of rotations whose average of R^T X R is tr(X)/D I for every X, as for
Haar's measure: the off-direction part of an orbit's mean gradient is a polynomial in the weights and W, and
one that vanishes at a point drawn from a density vanishes identically.

A and B in the sign of eq. (11), B = None for eq. (8). W = whitened S. M matrices, the A's and then the B's,
R prompts, G rotations, B prompts averaged over, V components, L layers, D covariates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from scipy.stats import norm
from torch import Tensor

from icl.checks.rounding import ROUNDING
from icl.checks.verdict import decide
from icl.models.gram import sparse_expected_risk
from icl.tasks import LinearRegressionLaw

CONFIDENCE = 0.999
USELESS = 0.01  # a relative rounding bound above which nothing was measured
CHUNK = 2000  # prompts whose gradients are held at a time

Stack = tuple[Tensor, Tensor | None]  # A_LDD and B_LDD


def rotations(dim: int) -> Tensor:
    """D 2^ceil(log2 D) signed cyclic permutations whose mean of R^T X R is tr(X)/D I for every X.

    The signs are rows of a Hadamard matrix, orthogonal in pairs of columns, and remove what is off the
    diagonal; the cyclic shifts level the diagonal.
    """
    signs = torch.ones(1, 1, dtype=torch.float64)
    while len(signs) < dim:
        signs = torch.cat([torch.cat([signs, signs], 1), torch.cat([signs, -signs], 1)])
    shifts = torch.stack([torch.eye(dim, dtype=torch.float64).roll(shift, 0) for shift in range(dim)])
    return (shifts[:, None] * signs[None, :, None, :dim]).reshape(-1, dim, dim)


def whitened_prompts(law: LinearRegressionLaw, rng: np.random.Generator, count: int) -> Tensor:
    """W with S = root W root^T."""
    S_BDD = law.covariate_grams([rng], count)[0]
    return law.task_root_RDD[0].mT @ S_BDD @ law.task_root_RDD[0]


def prompt_gradients(stack: Stack, W_RBDD: Tensor, law: LinearRegressionLaw) -> tuple[Tensor, Tensor]:
    """Risk (R, B) given the prompts and its gradients (R, M, D, D), averaged over B, in raw coordinates."""
    R = len(W_RBDD)
    root_DD, task_root_DD = law.root_RDD[0], law.task_root_RDD[0]
    S_RDDB = (root_DD @ W_RBDD @ root_DD.mT).movedim(1, -1).contiguous()
    leaves = [M.expand(R, *M.shape).clone().requires_grad_() for M in stack if M is not None]
    A, B = leaves[0], leaves[1] if len(leaves) > 1 else None
    risk_RB = sparse_expected_risk(A, B, S_RDDB, task_root_DD.expand(R, -1, -1), root_DD.expand(R, -1, -1))
    return risk_RB.detach(), torch.cat(torch.autograd.grad(risk_RB.mean(1).sum(), leaves), 1)


def whitened(gradient_MDD: Tensor, layers: int, law: LinearRegressionLaw) -> Tensor:
    """Gradients with respect to root^T A root and root^{-1} B root, any leading axes; Sigma becomes I."""
    root_DD, task_root_DD = law.root_RDD[0], law.task_root_RDD[0]
    A, B = gradient_MDD[..., :layers, :, :], gradient_MDD[..., layers:, :, :]
    return torch.cat([task_root_DD.mT @ A @ task_root_DD, root_DD.mT @ B @ task_root_DD], -3)


def orbit_gradient(stack: Stack, W_RDD: Tensor, law: LinearRegressionLaw) -> Tensor:
    """Whitened gradients (R, M, D, D) of the mean risk over each prompt's orbit."""
    turn_GDD = rotations(law.dim)
    orbits = ((turn_GDD @ W_DD @ turn_GDD.mT)[None] for W_DD in W_RDD)
    gradient_RMDD = torch.cat([prompt_gradients(stack, orbit, law)[1] for orbit in orbits])
    return whitened(gradient_RMDD, len(stack[0]), law)


class Deviation(NamedTuple):
    """A stack of gradients against multiples of Sigma (of I for B), each relative to its own norm."""

    off_direction: float
    derivative_error: float  # against the multiple that the polynomial's derivative names
    bound: float  # of rounding, at the matrix where the larger of the two is largest
    share: float  # of its own bound that any matrix takes up

    @property
    def verdict(self) -> str:
        """Undecided where rounding could hide any direction at all."""
        return decide(self.share, 1) if self.bound < USELESS else "undecided"


def deviation(found: Tensor, plus: Tensor, named: Tensor | None, law: LinearRegressionLaw) -> Deviation:
    """Whitened gradients (R, M, D, D) against multiples of I.

    `plus` is the gradient where all terms have one sign, which is what rounding is relative to; `named`
    (R, M) are derivatives along the multiples.
    """
    dim = found.shape[-1]
    identity = torch.eye(dim, dtype=torch.float64)
    size = torch.linalg.matrix_norm(found)
    mean = found.diagonal(dim1=-2, dim2=-1).mean(-1)
    off = torch.linalg.matrix_norm(found - mean[..., None, None] * identity) / size
    error = torch.zeros_like(off) if named is None else (mean - named / dim).abs() * math.sqrt(dim) / size
    condition = float(torch.linalg.cond(law.Sigma_RDD).max())
    bound = ROUNDING * condition * torch.linalg.matrix_norm(plus) / size
    larger = torch.maximum(off, error)
    at_largest = bound.reshape(-1)[larger.argmax()]
    return Deviation(float(off.max()), float(error.max()), float(at_largest), float((larger / bound).max()))


def worst_of(parts: Sequence[Deviation]) -> Deviation:
    largest = max(parts, key=lambda part: max(part.off_direction, part.derivative_error))
    return Deviation(
        max(part.off_direction for part in parts),
        max(part.derivative_error for part in parts),
        largest.bound,
        max(part.share for part in parts),
    )


def tilted(A_LDD: Tensor, law: LinearRegressionLaw) -> Tensor:
    """A_0 doubled along the first whitened axis: off S for D > 1."""
    root, inverse = law.root_RDD[0], law.task_root_RDD[0]
    first = root.mT @ A_LDD[0] @ root
    first[0] = 2 * first[0]
    return torch.cat([(inverse @ first @ inverse.mT)[None], A_LDD[1:]])


def rotation_test(
    stack: Stack, law: LinearRegressionLaw, rng: np.random.Generator, samples: int
) -> tuple[float, float]:
    """max |z| of the off-direction components of the sampled gradient, and its 99.9 % quantile.

    Each prompt's gradient is divided by its own norm, on S a function of the spectrum: rotation invariance
    and so the zero mean are kept, and the terms are bounded however heavy the tails of the gradient.
    """
    if law.dim == 1:
        return 0.0, 0.0
    parts = []
    for chunk_BDD in whitened_prompts(law, rng, samples).split(CHUNK):
        white_BMDD = whitened(prompt_gradients(stack, chunk_BDD[:, None], law)[1], len(stack[0]), law)
        unit_BMDD = white_BMDD / torch.linalg.matrix_norm(white_BMDD)[..., None, None]
        trace = unit_BMDD.diagonal(dim1=-2, dim2=-1).mean(-1)[..., None, None]
        parts.append((unit_BMDD - trace * torch.eye(law.dim, dtype=torch.float64)).flatten(1))
    off_BV = torch.cat(parts)
    z_V = off_BV.mean(0) / (off_BV.std(0) / math.sqrt(len(off_BV)))
    return float(z_V.abs().max()), float(norm.isf((1 - CONFIDENCE) / (2 * len(z_V))))
