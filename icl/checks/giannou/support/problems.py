"""Random problems of a given size and condition, and the settings that name them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from icl.checks.settings import integer, validate
from icl.errors import InputError, given_matrix, real
from icl.theory.logistic import LogisticLoss

Design = Sequence[Sequence[float]] | str | None  # nested lists or a .npy file
MAX_DIM = 200
MAX_CONTEXT = 5000


TOO_LONG = "the random problems take minutes"


@dataclass(eq=False)
class LogisticProblems:
    """Sizes of the random problems, mu, seed."""

    dim: int = integer(5, 1, MAX_DIM, TOO_LONG)
    context: int = integer(26, 1, MAX_CONTEXT, TOO_LONG)
    mu: float = 0.1
    seed: int = integer(0, 0)

    def __post_init__(self) -> None:
        validate(self)
        require_full_rank(self.dim, self.context)
        self.mu = validate_mu(self.mu)

    def losses(self, rng: np.random.Generator, samples: int) -> LogisticLoss:
        return LogisticLoss(*draw_classification(rng, samples, self.context, self.dim), self.mu)


def require_full_rank(dim: int, context: int) -> None:
    """Refuse n < d: the constructions write [I_d 0] into d x n blocks."""
    if context < dim:
        raise InputError(f"check.context={context}: must be at least check.dim={dim}, as [I_d 0] is d x n")


def validate_condition(condition: float, most: float) -> float:
    """Return kappa(A); refuse more than `most`, where A is nearly singular."""
    if isinstance(condition, int | float) and not isinstance(condition, bool) and math.isinf(condition):
        raise InputError(f"check.condition={condition}: A would be singular, it has no inverse")
    if real("check.condition", condition, 1) > most:
        raise InputError(f"check.condition={condition}: must be from 1 to {most:g}")
    return float(condition)


def draw_designs(rng: np.random.Generator, rows: int, dim: int, condition: float, samples: int) -> Tensor:
    """Draw matrices rows x dim with singular values spread evenly in log from 1 to 1 / condition."""
    left, _ = np.linalg.qr(rng.standard_normal((samples, rows, dim)))
    right, _ = np.linalg.qr(rng.standard_normal((samples, dim, dim)))
    s_D = np.geomspace(1.0, 1.0 / condition, dim) if dim > 1 else np.ones(1)
    return torch.from_numpy((left * s_D) @ right.swapaxes(1, 2))


def load_design(design: Design, dim: int, context: int) -> Tensor | None:
    """Return the A that the user gives, n x d and of full rank, or None."""
    if design is None:
        return None
    A_ND = given_matrix("check.design", design, context, dim)
    s_D = np.linalg.svd(A_ND, compute_uv=False)
    if s_D[-1] <= context * np.finfo(np.float64).eps * s_D[0]:
        raise InputError("check.design: A^T A is singular, it has no inverse to iterate to")
    return torch.from_numpy(A_ND)


def draw_classification(
    rng: np.random.Generator, samples: int, context: int, dim: int
) -> tuple[Tensor, Tensor]:
    """Draw A and y of Assumption 3.2: |a_i| <= 1, the longest of norm 1, and labels sign(<a_i, w>)."""
    A_BND = rng.standard_normal((samples, context, dim))
    A_BND /= np.linalg.norm(A_BND, axis=2).max(1)[:, None, None]
    w_BD1 = rng.standard_normal((samples, dim, 1))
    y_BN = np.where((A_BND @ w_BD1)[..., 0] >= 0, 1.0, -1.0)
    return torch.from_numpy(A_BND), torch.from_numpy(y_BN)


def validate_mu(mu: float) -> float:
    """Return mu; refuse so small a one that 1 / mu^2 leaves no digits to decide by."""
    if real("check.mu", mu, 0, open_low=True) < 1e-4:
        raise InputError(
            f"check.mu={mu}: must be at least 0.0001; below, rounding is as large as 1/mu makes it"
        )
    return float(mu)
