"""lu: the error of pretraining at finite d, to the order 1/d, where every prompt has a new task.

A feature vector is x (x) h, so that its leverage z = |x|^2 h^T G h varies from prompt to prompt by order
d^(-1/2). Leaving one prompt out, weights see it with the factor 1 / (1 + z); the equations below keep the law
of z, where the limit has its mean. By symmetry G = diag(g, ..., g, g'), and mean weights are [gamma I, 0].

N nodes of h, T nodes of |x|^2.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh_tridiagonal

Array = NDArray[np.float64]
STEPS = 500
PRECISION = 1e-10


def error(dim: int, examples: int, prompts: int, rho: float, ridge: float, nodes: int) -> float:
    """Return the mean error for a ridge lambda above 0 unless n > d (d + 1), by rules of `nodes` nodes."""
    D, rate, s = dim, prompts / dim, 1 + rho
    weight_N, along_N, parts_N2 = features(dim, examples, rho, nodes)
    node_T, weight_T = chi_squared(D, nodes)
    node_T, share = node_T / D, np.array([D, 1.0])

    def mean_over_x(power: int, below: int) -> Array:
        """Return E t^power / (1 + t z)^below over t = |x|^2."""
        return np.asarray((1 + (parts_N2 @ G)[:, None] * node_T) ** -below @ (weight_T * node_T**power))

    means = weight_N @ parts_N2
    G = 1 / (rate * means / share / 2 + rate * ridge)
    for _ in range(STEPS):
        before, G = G, 1 / (rate * (weight_N * mean_over_x(1, 1)) @ parts_N2 / share + rate * ridge)
        if np.abs(G / before - 1).max() < PRECISION:
            break
    gamma = rate * G[0] * float((weight_N * mean_over_x(1, 1)) @ along_N) / D
    # T = B / d: the leverages' quadratic form in the test error, fed back by every prompt
    c_N = mean_over_x(2, 2)
    feedback = rate * (parts_N2.T * weight_N * c_N) @ parts_N2 / share[:, None]
    form = np.linalg.solve(np.eye(2) - G[:, None] ** 2 * feedback, G**2 * means / share / D)
    miss_N = (D - 2 * gamma * along_N + gamma**2 * parts_N2[:, 0]) / D
    noise_N = (miss_N * c_N + rho * mean_over_x(1, 2)) * (parts_N2 @ form)
    return float(s + gamma**2 * means[0] / D - 2 * gamma + prompts * weight_N @ noise_N)


def features(dim: int, examples: int, rho: float, nodes: int) -> tuple[Array, Array, Array]:
    """Return weights, <w, h_1>, and |h_1|^2 beside h_2^2, for tasks on the sphere; h_2 is the last entry."""
    s, (z, weight) = 1 + rho, np.polynomial.hermite_e.hermegauss(nodes)
    rules = chi_squared(examples, nodes), (z, weight / weight.sum()), chi_squared(dim - 1, nodes)
    labels_N, z_N, rest_N = (part.ravel() for part in np.meshgrid(*(rule[0] for rule in rules)))
    weight_N = np.prod([part.ravel() for part in np.meshgrid(*(rule[1] for rule in rules))], 0)
    along_N = labels_N / dim**0.5 + np.sqrt(labels_N * rho / dim) * z_N
    square_N = along_N**2 + s * labels_N * rest_N / dim
    scale = dim / examples
    parts_N2 = np.column_stack([scale**2 * square_N, (s * labels_N / examples) ** 2])
    return weight_N, scale * along_N * dim**0.5, parts_N2


def chi_squared(freedom: int, nodes: int) -> tuple[Array, Array]:
    """Return Gauss's rule for chi^2, by the recursion of Laguerre's polynomials."""
    k = np.arange(nodes)
    node_T, vectors = eigh_tridiagonal(4 * k + freedom, np.sqrt(2 * k[1:] * (2 * k[1:] + freedom - 2)))
    return node_T, vectors[0] ** 2
