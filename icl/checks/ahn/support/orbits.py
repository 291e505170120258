"""The test that the gradient of the risk is a multiple of I for every whitened A_l and B_l; x, w ~ N(0, I).

With x = root u and w = root^{-T} v, where u, v ~ N(0, I), a stack (A, B) makes of a prompt what root^T A root
and root^{-1} B root make of (u, v). So all of this module is about standard Gaussian prompts, whatever the
condition number of Sigma: a whitened gradient G for A_l is root G root^T in the paper's coordinates, a
multiple of Sigma where G is one of I, and root^{-T} G root^T for B_l, one of I.

Measured without sampling error on the orbit of one drawn prompt under a finite group of rotations whose
average of R^T X R is tr(X)/D I for every X, as for Haar's measure: the off-direction part of an orbit's mean
gradient is a polynomial in the weights and W, and one that vanishes at a point drawn from a density vanishes
identically.

A and B in the sign of eq. (11), B = None for eq. (8). W the context's whitened sample covariance. M matrices,
the A's and then the B's, R prompts, G rotations, B prompts averaged over, V components, L layers,
D covariates.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from icl.checks.rounding import ROUNDING
from icl.checks.sequential import Comparison, compare
from icl.models.gram import sparse_expected_risk
from icl.progress import track
from icl.tasks import LinearRegressionLaw

CHUNK = 2000  # prompts whose gradients are held at a time

Stack = tuple[Tensor, Tensor | None]  # A_LDD and B_LDD, whitened


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


def count(dim: int) -> int:
    """Return how many orbits to measure. One would do; eight are cheap up to dim 8, at a cost of D^5 each."""
    return max(2, min(8, 64 // dim))


def whitened_prompts(law: LinearRegressionLaw, rng: np.random.Generator, count: int) -> Tensor:
    """W = (1/N) sum u u^T, u ~ N(0, I), as the law draws its own with a Sigma of I."""
    white_RDD = torch.eye(law.dim, dtype=torch.float64)[None]
    return replace(law, root_RDD=white_RDD).covariate_grams([rng], count)[0]


def prompt_risks(stack: Stack, W_RBDD: Tensor) -> Tensor:
    """Risk (R, B) given the prompts."""
    R, white_DD = len(W_RBDD), torch.eye(W_RBDD.shape[-1], dtype=torch.float64)
    A_RLDD = stack[0].expand(R, *stack[0].shape[-3:])
    B_RLDD = None if stack[1] is None else stack[1].expand(R, *stack[1].shape[-3:])
    white_RDD = white_DD.expand(R, -1, -1)
    return sparse_expected_risk(A_RLDD, B_RLDD, W_RBDD.movedim(1, -1).contiguous(), white_RDD, white_RDD)


def prompt_gradients(stack: Stack, W_RBDD: Tensor) -> tuple[Tensor, Tensor]:
    """Risk (R, B) given the prompts and its gradients (R, M, D, D), averaged over B."""
    leaves = [M.repeat(len(W_RBDD), 1, 1, 1).requires_grad_() for M in stack if M is not None]
    risk_RB = prompt_risks((leaves[0], leaves[1] if len(leaves) > 1 else None), W_RBDD)
    return risk_RB.detach(), torch.cat(torch.autograd.grad(risk_RB.mean(1).sum(), leaves), 1)


def orbit_gradient(stack: Stack, W_RDD: Tensor) -> Tensor:
    """Gradients (R, M, D, D) of the mean risk over each prompt's orbit."""
    turn_GDD = rotations(W_RDD.shape[-1])
    orbits = (
        (turn_GDD @ W_DD @ turn_GDD.mT)[None] for W_DD in track(W_RDD, "orbits of rotations", len(W_RDD))
    )
    return torch.cat([prompt_gradients(stack, orbit)[1] for orbit in orbits])


class Error(NamedTuple):
    """An error where it takes up most of its rounding bound.

    Of each matrix one orbit tells: `blind` is the bound on the orbit that sees it best, the largest of all
    matrices. `largest` is the largest error anywhere.
    """

    value: float
    bound: float
    blind: float
    largest: float


class Deviation(NamedTuple):
    """A stack of gradients against multiples of I, each relative to its own norm."""

    off_direction: Error
    derivative_error: Error  # against the multiple that the polynomial's derivative names


def deviation(found: Tensor, plus: Tensor, named: Tensor | None) -> Deviation:
    """Gradients (R, M, D, D) against multiples of I.

    `plus` is the gradient where all terms have one sign, which is what rounding is relative to; `named`
    (R, M) are derivatives along the multiples.
    """
    dim = found.shape[-1]
    identity = torch.eye(dim, dtype=torch.float64)
    size = torch.linalg.matrix_norm(found)
    mean = found.diagonal(dim1=-2, dim2=-1).mean(-1)
    off = torch.linalg.matrix_norm(found - mean[..., None, None] * identity) / size
    error = torch.zeros_like(off) if named is None else (mean - named / dim).abs() * math.sqrt(dim) / size
    bound = ROUNDING * torch.linalg.matrix_norm(plus) / size
    return Deviation(_error(off, bound), _error(error, bound))


def _error(error_RM: Tensor, bound_RM: Tensor) -> Error:
    at = (error_RM / bound_RM).argmax()  # of a NaN too
    blind = bound_RM.min(0).values.max()
    return Error(*(float(x) for x in (error_RM.flatten()[at], bound_RM.flatten()[at], blind, error_RM.max())))


def worst_of(one: Deviation, other: Deviation) -> Deviation:
    return Deviation(*(_worst(*errors) for errors in zip(one, other, strict=True)))


def _worst(one: Error, other: Error) -> Error:
    worst = other if math.isnan(other.value) or other.value / other.bound > one.value / one.bound else one
    return worst._replace(blind=max(one.blind, other.blind), largest=max(one.largest, other.largest))


def tilted(A_LDD: Tensor) -> Tensor:
    """A_0 doubled along the first axis: off S for D > 1."""
    A_LDD = A_LDD.clone()
    A_LDD[0, 0] *= 2
    return A_LDD


def rotation_test(
    stack: Stack, law: LinearRegressionLaw, rng: np.random.Generator, samples: int
) -> Comparison | None:
    """Test that the off-direction components of the sampled gradient have mean 0; dim 1 has none of them.

    Each prompt's gradient is divided by its own norm, on S a function of the spectrum: rotation invariance
    and so the zero mean are kept, and the terms are bounded however heavy the tails of the gradient.
    """
    if law.dim == 1:
        return None

    def off_direction(batch: int) -> Tensor:
        gradient_BMDD = prompt_gradients(stack, whitened_prompts(law, rng, batch)[:, None])[1]
        unit_BMDD = gradient_BMDD / torch.linalg.matrix_norm(gradient_BMDD)[..., None, None]
        trace = unit_BMDD.diagonal(dim1=-2, dim2=-1).mean(-1)[..., None, None]
        return (unit_BMDD - trace * torch.eye(law.dim, dtype=torch.float64)).flatten(1)

    components = (len(stack[0]) + (0 if stack[1] is None else len(stack[1]))) * law.dim**2
    return compare(off_direction, torch.zeros(components, dtype=torch.float64), CHUNK, samples, "directions")
