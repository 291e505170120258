"""The best step sizes of descent on a draw of contexts, its tasks and queries integrated out.

With y = <v, u>, E v v^T = F F^T and the query's second moment J J^T (as in icl.tasks.linear_regression),
descent predicts with error v^T p(T) u_q, T = S P with P = Sigma^{-1} or I and p = prod_l (1 - eta_l s).
So the mean risk over the draw is |F^T p(T) J|^2, and Arnoldi's method started at J writes it as
|F^T J|^2 |p(H) e_1|^2, exactly for every p of degree L: a search reads the draw once.

R replicas, B contexts, L steps, E width of u, D covariates, M = L + 1 size of H, V variables.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import least_squares
from torch import Tensor

from icl.algorithms.coordinates import per_replica, whitening
from icl.algorithms.descent import chebyshev_steps
from icl.errors import InputError, whole

MAX_LAYERS = 16
# Starts: Chebyshev's steps for these parts of the spectrum, in units of H_11.
INTERVALS = ((0.1, 1.5), (0.05, 3.0), (0.4, 3.0))

RELATIVE = 1e-14
EXHAUSTED = 1e-13

Array = NDArray[np.float64]
Polynomial = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Contexts:
    """A draw from a task: `law.covariate_grams(...)`, `law.label_root_REK`, `law.query_root_RED`."""

    S_RBEE: Tensor
    label_root_REK: Tensor
    query_root_RED: Tensor

    def __post_init__(self) -> None:
        if self.S_RBEE.ndim != 4 or self.S_RBEE.shape[1] < 1:
            raise InputError(f"search.S: has shape {tuple(self.S_RBEE.shape)}, must have (R, B, E, E)")
        R, _, E, _ = self.S_RBEE.shape
        for name, root in (("label_root", self.label_root_REK), ("query_root", self.query_root_RED)):
            if root.ndim != 3 or tuple(root.shape[:2]) != (R, E):
                raise InputError(f"search.{name}: has shape {tuple(root.shape)}, must have ({R}, {E}, ...)")


class _Rule(NamedTuple):
    """The mean risk of one replica: `initial` |p(H) e_1|^2."""

    H_MM: Tensor
    initial: float


@dataclass(frozen=True)
class Steps:
    """Step sizes in ascending order, which does not matter, and the mean risk over the draw."""

    eta_RL: Tensor
    risk_R: Tensor


def search_gd(
    contexts: Contexts,
    layers: int,
    Sigma_RDD: Tensor | None = None,
    per_step: bool = True,
    shared: bool = False,
) -> Steps:
    """Return steps for GradientDescent: eta for each step or one for all; for each replica or shared by
    all."""
    whole("search.layers", layers, 1, MAX_LAYERS)
    rules = _reduce(contexts, Sigma_RDD, layers)

    def polynomial(H_MM: Tensor, theta_V: Tensor) -> Tensor:
        return _gd(H_MM, theta_V.expand(layers))

    if per_step:
        starts = [np.array(chebyshev_steps(low, high, layers)) for low, high in INTERVALS]
    else:
        starts = [np.array([2 / (low + high)]) for low, high in INTERVALS]
    best_RV, risk_R = _search(rules, polynomial, starts, shared)
    return Steps(best_RV.sort(-1).values.expand(-1, layers).clone(), risk_R)


def _gd(H_MM: Tensor, eta_L: Tensor) -> Tensor:
    """p(H) e_1."""
    error_M = torch.eye(len(H_MM), dtype=H_MM.dtype)[0]
    for eta in eta_L:
        error_M = error_M - eta * (H_MM @ error_M)
    return error_M


def _search(
    rules: list[_Rule], polynomial: Polynomial, starts: list[Array], shared: bool
) -> tuple[Tensor, Tensor]:
    """Return the best end of Levenberg and Marquardt's method from all starts: (R, V) and the risks (R,)."""
    found = [
        _best(group, polynomial, starts) for group in ([rules] if shared else [[rule] for rule in rules])
    ]
    best_RV = torch.stack(found).expand(len(rules), -1)
    risks = [
        rule.initial * polynomial(rule.H_MM, best_V).square().sum()
        for rule, best_V in zip(rules, best_RV, strict=True)
    ]
    return best_RV, torch.stack(risks)


def _best(rules: list[_Rule], polynomial: Polynomial, starts: list[Array]) -> Tensor:
    """In units where H_11 = 1: the scale of x does not enter the search."""
    unit = sum(float(rule.H_MM[0, 0]) for rule in rules) / len(rules)
    scaled = [_Rule(rule.H_MM / unit, rule.initial / rules[0].initial) for rule in rules]

    def residuals(theta_V: Tensor) -> Tensor:
        return torch.cat([rule.initial**0.5 * polynomial(rule.H_MM, theta_V) for rule in scaled])

    def value(point_V: Array) -> Array:
        return residuals(torch.from_numpy(point_V)).numpy()

    def jacobian(point_V: Array) -> Array:
        return torch.autograd.functional.jacobian(
            residuals, torch.from_numpy(point_V), vectorize=True
        ).numpy()

    tolerances = {"ftol": RELATIVE, "xtol": RELATIVE, "gtol": RELATIVE}
    ends = [least_squares(value, start, jacobian, method="lm", **tolerances) for start in starts]
    return torch.from_numpy(min(ends, key=lambda end: end.cost).x) / unit


def _reduce(contexts: Contexts, Sigma_RDD: Tensor | None, degree: int) -> list[_Rule]:
    R, _, E, _ = contexts.S_RBEE.shape
    D = contexts.query_root_RED.shape[2]
    P_REE = torch.zeros(R, E, E, dtype=torch.float64)
    P_REE[:, :D, :D] = torch.eye(D)
    root_RDD = whitening(Sigma_RDD)
    if root_RDD is not None:
        if root_RDD.shape[-1] != D:
            raise InputError(f"algorithm.Sigma: has {root_RDD.shape[-1]} covariates, contexts have {D}")
        P_REE[:, :D, :D] = per_replica("covariances", root_RDD @ root_RDD.mT, R)
    V_REE = contexts.label_root_REK @ contexts.label_root_REK.mT
    return [
        _arnoldi(contexts.S_RBEE[r] @ P_REE[r], V_REE[r], contexts.query_root_RED[r], degree)
        for r in range(R)
    ]


def _arnoldi(T_BEE: Tensor, V_EE: Tensor, J_ED: Tensor, degree: int) -> _Rule:
    """T on stacks (B, E, D) of one matrix per context, with <Y, Z> = mean over contexts of tr(Y^T V Z).

    H's last column would belong to a higher degree and stays zero.
    """
    B, size = len(T_BEE), degree + 1
    start_BED = J_ED.expand(B, -1, -1)
    initial = float((start_BED * (V_EE @ start_BED)).sum() / B)
    basis_MX = T_BEE.new_zeros(size, start_BED.numel())
    basis_MX[0] = start_BED.reshape(-1) / initial**0.5
    H_MM = T_BEE.new_zeros(size, size)
    for k in range(degree):
        next_BED = T_BEE @ basis_MX[k].view_as(start_BED)
        before = _norm(next_BED, V_EE)
        H_MM[: k + 1, k] = basis_MX[: k + 1] @ (V_EE @ next_BED).reshape(-1) / B
        next_BED = next_BED - (H_MM[: k + 1, k] @ basis_MX[: k + 1]).view_as(next_BED)
        norm = _norm(next_BED, V_EE)
        if norm <= EXHAUSTED * before:
            break  # few contexts: every polynomial is now one of lower degree
        H_MM[k + 1, k] = norm
        basis_MX[k + 1] = next_BED.reshape(-1) / norm
    return _Rule(H_MM, initial)


def _norm(Z_BED: Tensor, V_EE: Tensor) -> float:
    return float((Z_BED * (V_EE @ Z_BED)).sum() / len(Z_BED)) ** 0.5
