"""Two layers of eq. (8) on isotropic tasks: their exact risk, its least values over families of matrices,
the two steps of Theorem 2's proof, and the risk's formulas on prompts drawn as tokens.

L = 2 layers, D covariates, N = `context` tokens, K pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import torch
from torch import Tensor

from icl.checks.ahn.support.search import FAMILIES, Optimum, search
from icl.checks.numbers import Numbers, tried
from icl.checks.settings import law_of
from icl.checks.token_evidence import PRECISION, affordable_context, compare_eq_8, paths_error
from icl.models import SparseA
from icl.random import generator
from icl.theory.ahn.invariant_risk import InvariantRisk, PolynomialMinimum
from icl.theory.expected_traces import sparse_a_risk
from icl.theory.quadratic import EPSILON

PAIRS = 64  # random symmetric pairs on which the proof's steps are measured
ACCURACY = (
    "possible gain of another Newton step, |gradient|^2 / (2 least Hessian eigenvalue), plus rounding of the "
    "risk, 2^-52 times its operations times the sum of the sizes of its terms"
)
ROUNDED = "rounding: 2^-52 times the operations of one term, as a share of the sum of the sizes of all terms"


class TwoLayers:
    """The risk of two layers at one covariance Sigma of x, w ~ N(0, I)."""

    def __init__(self, dim: int, context: int, seed: int, Sigma: Tensor | None = None) -> None:
        self.dim, self.context, self.seed = dim, context, seed
        self.identity_DD = torch.eye(dim, dtype=torch.float64)
        self.Sigma = self.identity_DD if Sigma is None else Sigma
        # Roundings of one term of the risk: products of 8 matrices, sums over 105 pairings and 10 words.
        self.rounding = EPSILON * (8 * dim + 105 + 10)

    @cached_property
    def scalar(self) -> PolynomialMinimum:
        """The best multiples of I where Sigma = I, by the polynomial."""
        return InvariantRisk(self.dim, self.context, layers=2).optimum()

    @property
    def scalar_LDD(self) -> Tensor:
        return torch.from_numpy(self.scalar.a_L)[:, None, None] * self.identity_DD

    def risk(self, A_LDD: Tensor) -> Tensor:
        return sparse_a_risk(A_LDD, self.Sigma, self.identity_DD, self.context)

    def sizes(self, A_LDD: Tensor) -> Tensor:
        """Return the sum of the sizes of all terms of the risk: with -|A| each word is a sum of positive
        terms."""
        return self.risk(-A_LDD.abs())

    def best(self, family: str, given: Sequence[Tensor], starts: int) -> Optimum:
        """Return the best matrices of a family that a search finds; its accuracy includes rounding."""
        found = search(
            family, self.risk, given, starts, generator(self.seed, "search", FAMILIES.index(family))
        )
        return replace(found, accuracy=found.accuracy + self.rounding * float(self.sizes(found.A_LDD)))

    def best_diagonal_and_symmetric(self, starts: int) -> tuple[Optimum, Optimum]:
        """Return the two optima; the proof's path from the latter is a start of the former."""
        symmetric = self.best("symmetric", [self.scalar_LDD], starts)
        diagonal = self.best("diagonal", [self.scalar_LDD, diagonalise(symmetric.A_LDD)], starts)
        return diagonal, min(symmetric, diagonal, key=lambda optimum: optimum.risk)

    def largest_rise(self, optimum_LDD: Tensor) -> float:
        """Return the most by which the proof's steps raise the risk, over random symmetric pairs and the
        optimum; a share of the sum of the sizes of the terms of both risks."""
        noise = generator(self.seed, "check").standard_normal((PAIRS, 2, self.dim, self.dim))
        noise_KLDD = torch.from_numpy(noise) * optimum_LDD.max()
        A_KLDD = torch.cat([(noise_KLDD + noise_KLDD.mT) / 2, optimum_LDD[None]])
        diagonal_KLDD = diagonalise(A_KLDD)
        rise_K = self.risk(diagonal_KLDD) - self.risk(A_KLDD)
        return float((rise_K / (self.sizes(A_KLDD) + self.sizes(diagonal_KLDD))).max())


def diagonalise(A_LDD: Tensor) -> Tensor:
    """Return the proof's diagonal pair: A_0 in its eigenbasis, of A_1 in that basis the diagonal."""
    eigenvalues_D, U_DD = torch.linalg.eigh(A_LDD[..., 0, :, :])
    rotated_DD = U_DD.mT @ A_LDD[..., 1, :, :] @ U_DD
    return torch.stack([eigenvalues_D, rotated_DD.diagonal(dim1=-2, dim2=-1)], -2).diag_embed()


def numbers_on_tokens(dim: int, context: int, seed: int) -> tuple[list[Numbers], list[str]]:
    """Compare both formulas of the risk with drawn prompts, the polynomial at its optimum and the pairings at
    matrices without symmetry; and the library's paths on such prompts. With a note where contexts are cut."""
    used = affordable_context(context, dim, layers=2)
    law, rng = law_of(dim, used, seed, covariance="identity"), generator(seed, "check", 1)
    layers = TwoLayers(dim, used, seed)
    A_LDD = layers.scalar_LDD
    noise_LDD = torch.from_numpy(rng.standard_normal(A_LDD.shape)) / dim**0.5
    free_LDD = A_LDD + 0.3 * float(A_LDD.max()) * noise_LDD
    token = compare_eq_8(law, [A_LDD], [layers.scalar.risk], rng, PRECISION)
    free = compare_eq_8(law, [free_LDD], [float(layers.risk(free_LDD))], rng, 4 * PRECISION)
    error, bound = paths_error(SparseA(dim, 2), law, rng)
    note = (
        f"The formulas of the risk are compared with tokens at context {used}: longer prompts take too long."
    )
    paths = (
        tried(paths_error=error)
        .means("largest difference of the library's predictions from attention written out, relative")
        .at_most(bound, ROUNDED)
    )
    return [
        paths,
        token.numbers("token", "the polynomial for the risk"),
        free.numbers("free", "the risk by pairings"),
    ], [note] if used < context else []
