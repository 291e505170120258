"""The ratio |phi'''| / (phi'')^{3/2} of the regularised logistic loss. N points, D covariates."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize


def largest_ratio(mu: float, context: int, dim: int, rng: np.random.Generator) -> float:
    """Return the largest ratio found from a random start, over points in the unit ball, x and u."""
    N, D = context, dim
    start = rng.standard_normal(N * D + 2 * D)

    def negative(theta: np.ndarray) -> float:
        A_ND = theta[: N * D].reshape(N, D)
        A_ND = A_ND / np.maximum(1.0, np.linalg.norm(A_ND, axis=1))[:, None]
        return -ratio(A_ND, theta[N * D : N * D + D], theta[N * D + D :], mu)

    return -float(minimize(negative, start, method="L-BFGS-B", options={"maxiter": 60}).fun)


def ratio(A_ND: np.ndarray, x_D: np.ndarray, u_D: np.ndarray, mu: float) -> float:
    """Return |phi'''| / (phi'')^{3/2} at x along u; labels do not matter, as p (1 - p) is even."""
    z_N, c_N = A_ND @ x_D, A_ND @ u_D / np.linalg.norm(u_D)
    t_N = np.tanh(z_N / 2)
    q_N = (1 - t_N**2) / 4
    return float(abs(np.mean(q_N * t_N * c_N**3)) / (np.mean(q_N * c_N**2) + mu) ** 1.5)


def ratio_of_one_point(q: float, mu: float) -> float:
    """Return the ratio at a single unit point with p (1 - p) = q, through x itself."""
    x = 2 * np.arctanh(np.sqrt(1 - 4 * q))
    one = np.ones((1, 1))
    return ratio(one, np.full(1, x), np.ones(1), mu)


def supremum_of_ratio(mu: float) -> float:
    """Return max_q q sqrt(1 - 4 q) / (q + mu)^{3/2}, which is at q = 2 mu / (1 + 12 mu)."""
    return float(2 / (3 * np.sqrt(3) * np.sqrt(mu) * (1 + 4 * mu)))
