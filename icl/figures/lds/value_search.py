"""The best risk with one head by a search over its value direction b alone.

At given b the keys a are a least-squares problem, solved exactly; the derivative of what is left in b is the
partial one (Golub and Pereyra's variable projection; the envelope theorem). Where the risk is nearly flat
along some directions, alternating least squares creeps, and this takes some tens of steps.
P token width.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor

from icl.tasks.quadratic import HeadsOptimum, QuadraticRisk

ITERATIONS = 300
SCREENED = 32  # starts for each that is followed
GRADIENT = 1e-12  # of the risk at X = 0: a search ends there


def search_values(
    risk: QuadraticRisk, rng: np.random.Generator, restarts: int, free_P: Tensor
) -> HeadsOptimum:
    """Best of `restarts` BFGS runs over b; not a proof of optimality. Entries of b outside `free_P` are zero.

    Of SCREENED times as many normal starts the best are followed, for half of `restarts`, and others for the
    rest. With one free entry there is nothing to search.
    """
    count = int(free_P.sum())
    starts = [rng.standard_normal(count) for _ in range(SCREENED * restarts if count > 1 else 1)]
    if count > 1:
        half = restarts // 2
        ranked = sorted(starts, key=lambda x: risk.best_with_values(_values(x, free_P)).gap)
        options = {"maxiter": ITERATIONS, "gtol": GRADIENT * risk.constant}
        starts = [
            minimize(gap, x, (risk, free_P), "BFGS", jac=True, options=options).x
            for x in ranked[: restarts - half] + starts[:half]
        ]
    return min((risk.best_with_values(_values(x, free_P)) for x in starts), key=lambda best: best.gap)


def _values(x: NDArray[np.float64], free_P: Tensor) -> Tensor:
    """b (1, P) of unit length: its scale goes to the keys."""
    b_1P = torch.zeros(1, len(free_P), dtype=torch.float64)
    b_1P[:, free_P] = torch.from_numpy(x)
    return b_1P / b_1P.norm()


def gap(x: NDArray[np.float64], risk: QuadraticRisk, free_P: Tensor) -> tuple[float, NDArray[np.float64]]:
    """Return the risk at the best keys above the convex bound, and its gradient in the free entries of b."""
    b_1P = _values(x, free_P)
    best = risk.best_with_values(b_1P)
    b_1P.requires_grad_()
    risk.value_of_heads(b_1P, best.a_HKP).backward()
    assert b_1P.grad is not None
    return best.gap, (b_1P.grad[0, free_P] / float(np.linalg.norm(x))).numpy()
