"""Gauss rule of the sample covariance G = W / n of two covariates, W ~ Wishart_2(n, I).

Let s = tr G, p = det G and G = s/2 I + r (cos t H + sin t K) with H = diag(1, -1), K = [[0, 1], [1, 0]]. The
density of W is proportional to p^((n-3)/2) exp(-n s/2), and dW to s^2 rho d rho ds dt with r = s rho / 2.
So t is uniform, n s ~ chi^2_2n and q = 1 - rho^2 = 4 p / s^2 ~ Beta((n - 1)/2, 1), all independent; at n = 1
q is 0.

J nodes, D = 2 covariates.
"""

from fractions import Fraction
from functools import lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from icl.theory.quadrature import gauss_rule

Array = NDArray[np.float64]


@lru_cache(maxsize=64)
def plane_rule(context: int, degree: int) -> tuple[Array, Array]:
    """Return (G_JDD, weight_J), exact for every polynomial of this degree in the entries of G."""
    n, count = context, degree // 2 + 1
    s_J, s_weight_J = gauss_rule(
        [Fraction(prod(2 * n + 2 * i for i in range(k)), n**k) for k in range(2 * count)], count
    )
    if n == 1:
        q_J, q_weight_J = np.zeros(1), np.ones(1)
    else:  # even powers of rho alone have a mean over t that is not 0
        count = degree // 4 + 1
        q_J, q_weight_J = gauss_rule([Fraction(n - 1, n - 1 + 2 * k) for k in range(2 * count)], count)
    angle_J = 2 * np.pi * np.arange(degree + 1) / (degree + 1)
    s, q, angle = (grid.ravel() for grid in np.meshgrid(s_J, q_J, angle_J, indexing="ij"))
    weight_J = np.repeat(np.outer(s_weight_J, q_weight_J).ravel() / len(angle_J), len(angle_J))
    radius = s / 2 * np.sqrt(1 - q)
    u, v = radius * np.cos(angle), radius * np.sin(angle)
    G_JDD = np.stack([np.stack([s / 2 + u, v], -1), np.stack([v, s / 2 - u], -1)], -2)
    for array in (G_JDD, weight_J):
        array.setflags(write=False)
    return G_JDD, weight_J
