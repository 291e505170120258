"""Gradient flow of L steps on eigenvalues with weights, and least risks, in floats.

K eigenvalues, L layers, T times.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from flint import fmpq
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.optimize import minimize_scalar

from icl.theory.depth.steps import atoms
from icl.theory.quadrature import legendre_rule
from icl.theory.rationals import rational

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Spectrum:
    """f(g) = sum_k weight_k prod_l (1 - g_l lambda_k)^2."""

    lambda_K: Array
    weight_K: Array

    @classmethod
    def power(cls, nu: float, beta: float, dim: int) -> Self:
        """Return lambda_k = k^-nu, weights in proportion to k^(-nu beta - 1), of sum 1, k = 1 .. dim."""
        k_K = np.arange(1.0, dim + 1)
        weight_K = k_K ** (-nu * beta - 1)
        return cls(k_K**-nu, weight_K / weight_K.sum())

    @classmethod
    def endless(cls, nu: float, beta: float, first: int = 4000, last: float = 1e14) -> Self:
        """Return weights k^(-nu beta - 1), k = 1, 2, ..: from `first` on a Gauss rule in log k, by panels."""
        head_K = np.arange(1.0, first + 1)
        node_J, weight_J = legendre_rule(12)
        edges = np.linspace(np.log(first + 0.5), np.log(last), 81)
        half = (edges[1] - edges[0]) / 2
        k_K = np.append(head_K, np.exp(edges[:-1, None] + half * (1 + node_J)))
        width_K = np.append(1 / head_K, np.tile(half * weight_J, 80))  # of log k
        return cls(k_K**-nu, k_K ** (-nu * beta) * width_K)

    def moments(self, count: int) -> list[fmpq]:
        values, weights = ([rational(float(x)) for x in of] for of in (self.lambda_K, self.weight_K))
        return atoms(values, weights, count)

    def risk(self, g_TL: Array) -> Array:
        error_TK = np.prod(1 - g_TL[..., None] * self.lambda_K, axis=-2)
        return np.square(error_TK) @ self.weight_K

    def slope(self, g_L: Array) -> Array:
        factor_LK = 1 - g_L[:, None] * self.lambda_K
        others_LK = np.stack([np.prod(np.delete(factor_LK, k, 0), 0) for k in range(len(g_L))])
        return -2 * (others_LK * factor_LK.prod(0)) @ (self.weight_K * self.lambda_K)

    def flow(self, start_L: Array, times_T: Array) -> Array:
        """Return g at these times, (T, L), of g' = -df/dg from `start_L` at time 0."""
        span, tight = (0, times_T[-1]), {"rtol": 1e-9, "atol": 1e-12}
        return solve_ivp(lambda _, g: -self.slope(g), span, start_L, "LSODA", times_T, **tight).y.T

    def best_shared(self, layers: int) -> tuple[float, float]:
        """Return the best equal step and its risk, which is convex in the step."""
        found = minimize_scalar(
            lambda g: np.log((1 - g * self.lambda_K) ** (2 * layers) @ self.weight_K),
            bounds=(0, 2.5 / self.lambda_K[0]),
            options={"xatol": 1e-12},
        )
        return float(found.x), float(np.exp(found.fun))

    def least_separate(self, layers: int) -> Array:
        """Return the least risk of 0 .. `layers` steps that may differ: what is left of the constant after
        its projections on lambda, .., lambda^l, by Lanczos' method with full orthogonalisation."""
        left_K = np.sqrt(self.weight_K)
        basis_LK = np.zeros((layers, len(left_K)))
        next_K, risks = left_K * self.lambda_K, [float(left_K @ left_K)]
        for k in range(layers):
            for _ in range(2):
                next_K = next_K - basis_LK[:k].T @ (basis_LK[:k] @ next_K)
            basis_LK[k] = next_K / np.linalg.norm(next_K)
            left_K = left_K - basis_LK[k] * (basis_LK[k] @ left_K)
            risks.append(float(left_K @ left_K))
            next_K = self.lambda_K * basis_LK[k]
        return np.array(risks)
