"""ahn, Theorem 2: two layers of eq. (8), x and w ~ N(0, I): diagonal A minimise the loss over symmetric A.

The proof in two steps, both measured: the risk does not change under A_l -> U^T A_l U, so A_0 may be taken
diagonal; and it is quadratic and convex in A_1, so dropping A_1's off-diagonal part (the mean of S A_1 S over
sign matrices S) cannot raise it. From any symmetric pair this leads to a diagonal one that is no worse.

L = 2 layers, D covariates, N = `context` tokens, V variables of a family.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor
from torch.autograd.functional import hessian

from icl.checks.verdict import Bound, Control, Finding, decide, joint
from icl.errors import InputError, whole
from icl.random import generator
from icl.theory.polynomial import InvariantRisk
from icl.theory.words import sparse_a_risk

EPSILON = float(np.finfo(np.float64).eps)
MAX_DIM = 12  # 10 s; at 16 half a minute and 1.7 GB
MAX_CONTEXT = 100_000
PAIRS = 64  # random symmetric pairs on which the proof's steps are measured
CONTROL_STARTS = 2
FAMILIES = ("diagonal", "symmetric", "free")


class Theorem2:
    """Settings: dimension (at least 2), context length, random starts per family, their seed."""

    reference = "Theorem 2"
    claim = (
        "For two layers of eq. (8) and isotropic x and w, diagonal A minimise the loss over all symmetric A."
    )

    def __init__(self, dim: int = 5, context: int = 20, starts: int = 8, seed: int = 0) -> None:
        self.dim, self.context = whole("check.dim", dim, 1), whole("check.context", context, 1)
        self.starts, self.seed = whole("check.starts", starts, 1), whole("check.seed", seed, 0)
        if self.dim == 1:
            raise InputError("check.dim=1: must be at least 2, every 1 x 1 matrix is diagonal")
        if self.dim > MAX_DIM:
            raise InputError(
                f"check.dim={dim}: at most {MAX_DIM}, the Hessian in 2 dim^2 variables takes over 1 GB beyond"
            )
        if self.context > MAX_CONTEXT:
            raise InputError(
                f"check.context={context}: at most {MAX_CONTEXT}, the risk falls as 1/context^2 into the "
                "rounding of its terms"
            )

    def measure(self) -> Finding:
        with _one_thread():
            return self._measure()

    def _measure(self) -> Finding:
        I_DD = torch.eye(self.dim, dtype=torch.float64)
        scalar = InvariantRisk(self.dim, self.context, layers=2).optimum()
        scalar_LDD = torch.from_numpy(scalar.a_L)[:, None, None] * I_DD
        engines_gap = abs(scalar.risk - float(self._risk(scalar_LDD, I_DD)))
        diagonal, symmetric = self._compare(I_DD, scalar_LDD, self.starts)
        free = self._search("free", I_DD, [symmetric.A_LDD], self.starts)
        rise = self._largest_rise(I_DD, symmetric.A_LDD)
        bound = diagonal.accuracy + symmetric.accuracy
        # A violated hypothesis: correlated covariates, for which the basis is no longer arbitrary.
        Sigma = (I_DD + 1) / 2
        one, other = self._compare(Sigma, scalar_LDD, CONTROL_STARTS)
        control, control_rise = one.risk - other.risk, self._largest_rise(Sigma, other.A_LDD)
        gap = diagonal.risk - symmetric.risk
        rise_bound = EPSILON * self._operations
        return Finding(
            verdict=joint(
                [
                    decide(gap, bound),
                    decide(rise, rise_bound),
                    decide(engines_gap, bound),
                    "holds" if np.isfinite(bound) else "undecided",
                ]
            ),
            measured={
                "best_scalar": scalar.risk,
                "best_diagonal": diagonal.risk,
                "best_symmetric": symmetric.risk,
                "best_unrestricted": free.risk,
                "diagonal_minus_symmetric": gap,
                "scalar_minus_diagonal": scalar.risk - diagonal.risk,
                "symmetric_minus_unrestricted": symmetric.risk - free.risk,
                "largest_rise": rise,
                "rise_rounding": rise_bound,
                "scalar_risk_by_pairings_minus_polynomial": engines_gap,
                "spread_of_starts": max(optimum.spread for optimum in (diagonal, symmetric, free)),
                "scalars": scalar.a_L.tolist(),
            },
            bound=Bound(
                bound,
                "what another Newton step could gain, |gradient|^2 / (2 least Hessian eigenvalue), plus "
                "rounding of the risk, 2^-52 times its operations times the sum of the sizes of its terms",
            ),
            control=Control(
                "best diagonal minus best symmetric risk at Sigma = (I + 1 1^T)/2, where the proof's steps "
                f"raise it by up to {control_rise:.1%} of its terms",
                control,
                control > one.accuracy + other.accuracy,
            ),
            notes=self._notes(scalar.risk, diagonal, symmetric, free),
        )

    def _notes(self, scalar: float, diagonal: _Optimum, symmetric: _Optimum, free: _Optimum) -> list[str]:
        starts = f"best of {self.starts} random starts and the optima of smaller families, no proof"
        notes = [
            f"Diagonal, symmetric and unrestricted values are each the {starts}; scalar multiples of I are "
            f"minimised exactly. The proof's two steps are measured on {PAIRS} symmetric pairs and at the "
            "optimum found: largest_rise is what they add to the risk at most, as a share of its terms."
        ]
        if scalar - diagonal.risk <= diagonal.accuracy:
            notes.append(
                "The best diagonal matrices found are no better than multiples of I: the stepsizes the text "
                "calls coordinate-wise are the same for all coordinates."
            )
        lower = symmetric.risk - free.risk > symmetric.accuracy + free.accuracy
        without = "Unrestricted A do better than" if lower else "No unrestricted A found does better than"
        return [*notes, f"{without} symmetric ones."]

    def _compare(self, Sigma: Tensor, scalar_LDD: Tensor, starts: int) -> tuple[_Optimum, _Optimum]:
        """Best diagonal and best symmetric A; the proof's path from the latter is a start of the former."""
        symmetric = self._search("symmetric", Sigma, [scalar_LDD], starts)
        diagonal = self._search("diagonal", Sigma, [scalar_LDD, _diagonalised(symmetric.A_LDD)], starts)
        return diagonal, min(symmetric, diagonal, key=lambda optimum: optimum.risk)

    def _search(self, family: str, Sigma: Tensor, given: Sequence[Tensor], starts: int) -> _Optimum:
        """Best of the given and of random starts; L-BFGS runs all at once, on the sum of their risks."""
        basis_VDD = _basis(family, self.dim)
        rng = generator(self.seed, "search", FAMILIES.index(family))

        def risk(theta_LV: Tensor) -> Tensor:
            return self._risk(torch.einsum("...lv,vde->...lde", theta_LV, basis_VDD), Sigma)

        scale = float(given[0].abs().max())
        given_KLV = torch.einsum("klde,vde->klv", torch.stack(list(given)), basis_VDD)
        noise_KLV = torch.from_numpy(rng.standard_normal((starts, 2, len(basis_VDD))))
        noise_KLV = noise_KLV * torch.from_numpy(rng.uniform(0.2, 1.5, (starts, 1, 1))) * scale
        end_KLV = _descend(risk, torch.cat([given_KLV, noise_KLV]))
        risk_K = risk(end_KLV)
        best_LV, newton = _polish(risk, end_KLV[risk_K.argmin()])
        A_LDD = torch.einsum("lv,vde->lde", best_LV, basis_VDD)
        return _Optimum(
            A_LDD,
            risk(best_LV).item(),
            accuracy=newton + EPSILON * self._operations * float(self._sizes(A_LDD, Sigma)),
            spread=float(risk_K.max() - risk_K.min()),
        )

    def _largest_rise(self, Sigma: Tensor, optimum_LDD: Tensor) -> float:
        """The most by which the proof's steps raise the risk, over random symmetric pairs and the optimum.

        A share of the sum of the sizes of the terms of both risks.
        """
        rng = generator(self.seed, "check")
        noise_KLDD = torch.from_numpy(rng.standard_normal((PAIRS, 2, self.dim, self.dim))) * optimum_LDD.max()
        A_KLDD = torch.cat([(noise_KLDD + noise_KLDD.mT) / 2, optimum_LDD[None]])
        diagonal_KLDD = _diagonalised(A_KLDD)
        rise_K = self._risk(diagonal_KLDD, Sigma) - self._risk(A_KLDD, Sigma)
        sizes_K = self._sizes(A_KLDD, Sigma) + self._sizes(diagonal_KLDD, Sigma)
        return float((rise_K / sizes_K).max())

    def _risk(self, A_LDD: Tensor, Sigma: Tensor) -> Tensor:
        return sparse_a_risk(A_LDD, Sigma, torch.eye(self.dim, dtype=torch.float64), self.context)

    def _sizes(self, A: Tensor, Sigma: Tensor) -> Tensor:
        """The sum of the sizes of all terms of the risk: with -|A| each word is a sum of positive terms."""
        return self._risk(-A.abs(), Sigma)

    @property
    def _operations(self) -> int:
        """Roundings of one term: products of up to 8 matrices, sums over 105 pairings and 10 words."""
        return 8 * self.dim + 105 + 10


@dataclass(frozen=True, eq=False)
class _Optimum:
    """Best of the runs; its risk is within `accuracy` of the local minimum there. Runs differ by `spread`."""

    A_LDD: Tensor
    risk: float
    accuracy: float
    spread: float


@contextmanager
def _one_thread() -> Iterator[None]:
    """Thousands of operations on tiny matrices: two threads on two busy cores took ten times as long."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _diagonalised(A_LDD: Tensor) -> Tensor:
    """The proof's diagonal pair: A_0 in its eigenbasis, of A_1 in that basis the diagonal."""
    eigenvalues_D, U_DD = torch.linalg.eigh(A_LDD[..., 0, :, :])
    rotated_DD = U_DD.mT @ A_LDD[..., 1, :, :] @ U_DD
    return torch.stack([eigenvalues_D, rotated_DD.diagonal(dim1=-2, dim2=-1)], -2).diag_embed()


def _descend(risk: Callable[[Tensor], Tensor], start_KLV: Tensor) -> Tensor:
    def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
        theta_KLV = torch.from_numpy(theta.reshape(start_KLV.shape)).requires_grad_()
        total = risk(theta_KLV).sum()
        return total.item(), torch.autograd.grad(total, theta_KLV)[0].numpy().ravel()

    options = {"maxiter": 3000, "ftol": 1e-13, "gtol": 1e-9, "maxcor": 30}
    run = minimize(objective, start_KLV.numpy().ravel(), jac=True, method="L-BFGS-B", options=options)
    return torch.from_numpy(run.x.reshape(start_KLV.shape))


def _polish(risk: Callable[[Tensor], Tensor], theta_LV: Tensor) -> tuple[Tensor, float]:
    """Newton steps while they shrink the gradient, and what one more could gain (see the bound's source).

    Infinite where the Hessian is not positive: nothing is known there.
    """
    gradient_LV = _gradient(risk, theta_LV)
    while True:
        hessian_VV = hessian(risk, theta_LV, vectorize=True).reshape(theta_LV.numel(), -1)
        step_V = torch.linalg.lstsq(hessian_VV, gradient_LV.flatten(), driver="gelsd").solution
        after_LV = theta_LV - step_V.reshape(theta_LV.shape)
        gradient_after_LV = _gradient(risk, after_LV)
        if not gradient_after_LV.norm() < 0.5 * gradient_LV.norm():
            curvature = float(torch.linalg.eigvalsh(hessian_VV)[0])
            gain = float(gradient_LV.square().sum()) / (2 * curvature) if curvature > 0 else float("inf")
            return theta_LV, gain
        theta_LV, gradient_LV = after_LV, gradient_after_LV


def _gradient(risk: Callable[[Tensor], Tensor], theta_LV: Tensor) -> Tensor:
    variable_LV = theta_LV.clone().requires_grad_()
    return torch.autograd.grad(risk(variable_LV), variable_LV)[0]


def _basis(family: str, dim: int) -> Tensor:
    """Orthonormal basis (V, D, D) of the matrices of a family."""
    units_DDDD = torch.eye(dim * dim, dtype=torch.float64).reshape(dim, dim, dim, dim)
    diagonal_VDD = units_DDDD[range(dim), range(dim)]
    if family == "diagonal":
        return diagonal_VDD
    if family == "free":
        return units_DDDD.flatten(0, 1)
    rows, columns = torch.tril_indices(dim, dim, -1)
    pairs_VDD = (units_DDDD[rows, columns] + units_DDDD[columns, rows]) / 2**0.5
    return torch.cat([diagonal_VDD, pairs_VDD])
