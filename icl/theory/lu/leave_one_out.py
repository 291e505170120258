"""lu: the error of pretraining at finite d, to the order 1/d, where every prompt has a new task.

A feature vector is x (x) h, so that its leverage z = |x|^2 h^T G h varies from prompt to prompt by order
d^(-1/2). Leaving one prompt out, weights see it with the factor 1 / (1 + z); the equations below keep the law
of z, where the limit has its mean. By symmetry G = diag(g, ..., g, g'), and mean weights are [gamma I, 0].

N draws of h, T nodes of |x|^2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import roots_genlaguerre

Array = NDArray[np.float64]
NODES, STEPS = 9, 500
PRECISION = 1e-10


@dataclass(frozen=True)
class LeaveOneOut:
    """Dimension, examples l, prompts n, noise rho; a ridge lambda above 0 unless n > d (d + 1)."""

    dim: int
    examples: int
    prompts: int
    rho: float
    ridge: float

    def error(self, rng: np.random.Generator, draws: int = 20_000) -> float:
        """Return the mean error; expectations over h are taken over `draws` draws, as differences from what
        they are where z is its mean."""
        D, rate = self.dim, self.prompts / self.dim
        square_N, last_N, along_N = self._features(rng, draws)
        s, each = 1 + self.rho, 1 / self.examples
        means = np.array([D * (s * D * each + 1 + each), (1 + 2 * each) * s**2])  # of |h_1|^2 and h_2^2
        parts_N2 = np.column_stack([square_N, last_N**2])
        node_T, weight_T = roots_genlaguerre(NODES, D / 2 - 1)
        node_T, weight_T = node_T * 2 / D, weight_T / weight_T.sum()
        share = np.array([D, 1.0])

        def mean_over_x(power: int, below: int, z_N: Array) -> Array:
            """Return E t^power / (1 + t z)^below over t = |x|^2."""
            z_NT = np.atleast_1d(z_N)[:, None] * node_T
            return np.asarray((1 + z_NT) ** -below @ (weight_T * node_T**power))

        def expected(values_N: Array, at_mean: float, of_N: Array, its_mean: Array | float) -> Array:
            return np.asarray(at_mean * its_mean + ((values_N - at_mean)[:, None] * of_N).mean(0))

        G = 1 / (rate * means / share / 2 + rate * self.ridge)
        for _ in range(STEPS):
            z_N, z = parts_N2 @ G, float(means @ G)
            alpha_N, alpha = mean_over_x(1, 1, z_N), float(mean_over_x(1, 1, np.array([z]))[0])
            before, G = G, 1 / (rate * expected(alpha_N, alpha, parts_N2, means) / share + rate * self.ridge)
            if np.abs(G / before - 1).max() < PRECISION:
                break
        z_N, z = parts_N2 @ G, float(means @ G)
        alpha_N, alpha = mean_over_x(1, 1, z_N), float(mean_over_x(1, 1, np.array([z]))[0])
        gamma = rate * G[0] * float(expected(alpha_N, alpha, along_N[:, None], D)[0]) / D
        # T = B / d: the leverages' quadratic form in the test error, fed back by every prompt
        c_N = mean_over_x(2, 2, z_N)
        products_N4 = (parts_N2[:, :, None] * parts_N2[:, None]).reshape(draws, 4)
        feedback = rate * (c_N[:, None] * products_N4).mean(0).reshape(2, 2) / share[:, None]
        form = np.linalg.solve(np.eye(2) - G[:, None] ** 2 * feedback, G**2 * means / share / D)
        form_N = parts_N2 @ form
        miss_N = (D - 2 * gamma * along_N + gamma**2 * square_N) / D
        noise_N = mean_over_x(1, 2, z_N)
        variance = self.prompts * float(((miss_N * c_N + self.rho * noise_N) * form_N).mean())
        return s + gamma**2 * means[0] / D - 2 * gamma + variance

    def _features(self, rng: np.random.Generator, draws: int) -> tuple[Array, Array, Array]:
        """Draw |h_1|^2, h_2 and <w, h_1> for tasks on the sphere; h_2 is the last entry of h."""
        D, s = self.dim, 1 + self.rho
        labels_N = s * rng.chisquare(self.examples, draws)
        along_N = labels_N / (s * D**0.5) + np.sqrt(labels_N * self.rho / (s * D)) * rng.standard_normal(
            draws
        )
        across_N = labels_N / D * (rng.chisquare(D - 1, draws) if D > 1 else 0.0)
        scale = D / self.examples
        return scale**2 * (along_N**2 + across_N), labels_N / self.examples, scale * along_N * D**0.5
