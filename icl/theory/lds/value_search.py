"""The best risk with H heads by a search over their value directions b alone.

At given b the keys a are a least-squares problem, solved exactly; the derivative of what is left in b is the
partial one (Golub and Pereyra's variable projection; the envelope theorem). Where the risk is nearly flat
along some directions, alternating least squares creeps, and this takes some tens of steps.
H heads, P token width.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor

from icl.theory.quadratic import HeadsOptimum, QuadraticRisk

ITERATIONS = 300
SCREENED = 32  # starts for each that is followed
GRADIENT = 1e-12  # of the risk at X = 0: a search ends there


def search_values(
    risk: QuadraticRisk,
    heads: int,
    rng: np.random.Generator,
    restarts: int = 8,
    free_P: Tensor | None = None,
) -> HeadsOptimum:
    """Best of `restarts` BFGS runs over b (H, P); not a proof of optimality.

    Of SCREENED times as many normal starts the best are followed, for half of `restarts`, and others for the
    rest. A head with two free entries has only an angle, which this scans.

    `free_P` masks which entries of every b may differ from zero; None is all.
    """
    P = risk.space.width
    free_P = torch.ones(P, dtype=torch.bool) if free_P is None else free_P
    if heads < 1 or restarts < 1 or not bool(free_P.any()):
        raise ValueError(f"heads={heads}, restarts={restarts}: must be at least 1, with a free entry of b")
    count = heads * int(free_P.sum())
    starts = [rng.standard_normal(count) for _ in range(SCREENED * restarts if count > heads else 1)]
    if count > heads:
        half = restarts // 2
        ranked = sorted(starts, key=lambda start: _gap_at(start, risk, heads, free_P))
        starts = ranked[: restarts - half] + starts[:half]
    found = []
    for start in starts:
        if count > heads:
            options = {"maxiter": ITERATIONS, "gtol": GRADIENT * risk.constant}
            start = minimize(_gap, start, (risk, heads, free_P), "BFGS", jac=True, options=options).x
        found.append(risk.best_with_values(_values(start, heads, free_P)))
    best = min(found, key=lambda optimum: optimum.gap)
    return HeadsOptimum(
        best.value, best.gap, best.b_HP, best.a_HKP, tuple(sorted(one.value for one in found)), True
    )


def _values(x: NDArray[np.float64], heads: int, free_P: Tensor) -> Tensor:
    """b (H, P) with rows of unit length: the scale of a row goes to its keys."""
    b_HP = torch.zeros(heads, len(free_P), dtype=torch.float64)
    b_HP[:, free_P] = torch.from_numpy(x).view(heads, -1)
    return b_HP / b_HP.norm(dim=-1, keepdim=True)


def _gap_at(x: NDArray[np.float64], risk: QuadraticRisk, heads: int, free_P: Tensor) -> float:
    return risk.best_with_values(_values(x, heads, free_P)).gap


def _gap(
    x: NDArray[np.float64], risk: QuadraticRisk, heads: int, free_P: Tensor
) -> tuple[float, NDArray[np.float64]]:
    point = torch.from_numpy(x).view(heads, -1)
    b_HP = _values(x, heads, free_P)
    best = risk.best_with_values(b_HP)
    b_HP.requires_grad_()
    risk.value_of_heads(b_HP, best.a_HKP).backward()
    assert b_HP.grad is not None
    return best.gap, (b_HP.grad[:, free_P] / point.norm(dim=-1, keepdim=True)).flatten().numpy()
