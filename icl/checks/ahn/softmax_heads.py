"""The best softmax layer of H heads that commute with rotations, and its excess over linear attention.

x, w ~ N(0, I), n tokens. Such a head has k I for the first d columns of Q and (0, b) as the last row of P. It
sees |x_q|^2 and, of each token, s_i = x_i.x_q and y_i = w.x_i alone. For a given k the best b is linear.
B prompts, N tokens, H heads.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from icl.checks.statement import Sample
from icl.random import generator
from icl.theory.closed_forms import isotropic_risk, isotropic_step

Array = NDArray[np.float64]

TEST = 8  # fresh prompts for each that is searched on
RIDGE = 1e-6  # without it heads of nearly one k read what is of these prompts alone
LARGEST = 20.0  # k: the greatest score has all of the weight


class Seen(NamedTuple):
    """What such heads see of prompts, and the label that they predict."""

    score_BN: Array
    label_BN: Array
    square_B: Array
    target_B: Array


def draw(rng: np.random.Generator, dim: int, context: int, count: int) -> Seen:
    """Draw w and x_i by their parts along x_q; w has another part, of length `across`."""
    size_B, across_B = (np.sqrt(2 * rng.standard_gamma(k / 2, count)) for k in (dim, dim - 1))
    along_B, (first_BN, second_BN) = rng.standard_normal(count), rng.standard_normal((2, count, context))
    label_BN = along_B[:, None] * first_BN + across_B[:, None] * second_BN
    return Seen(size_B[:, None] * first_BN, label_BN, size_B**2, size_B * along_B)


def read(k_H: Array, seen: Seen) -> tuple[Array, Array]:
    """Return the label that each head reads, (B, H), and its derivative in k."""
    read_BH, slope_BH = np.empty((2, len(seen.target_B), len(k_H)))
    for h, k in enumerate(k_H):
        keys_BM = np.concatenate([seen.score_BN, seen.square_B[:, None]], 1)  # the query is masked after
        weights_BM = np.exp(k * keys_BM - (k * keys_BM).max(1, keepdims=True))
        weights_BM /= weights_BM.sum(1, keepdims=True)
        read_BN = weights_BM[:, :-1] * seen.label_BN
        read_BH[:, h] = read_BN.sum(1)
        mean_B = (weights_BM * keys_BM).sum(1)
        slope_BH[:, h] = (read_BN * seen.score_BN).sum(1) - mean_B * read_BH[:, h]
    return read_BH, slope_BH


def fit(k_H: Array, seen: Seen) -> tuple[float, Array, Array]:
    """Return the loss, with the ridge, at the best b, its gradient in k, and this b."""
    read_BH, slope_BH = read(k_H, seen)
    count, ridge_HH = len(seen.target_B), RIDGE * np.eye(len(k_H))
    b_H = np.linalg.solve(read_BH.T @ read_BH / count + ridge_HH, read_BH.T @ seen.target_B / count).astype(
        np.float64
    )
    off_B = read_BH @ b_H - seen.target_B
    return float(off_B @ off_B / count + RIDGE * b_H @ b_H), 2 * b_H * (off_B @ slope_BH) / count, b_H


def excess(dim: int, context: int, heads: int, starts: int, samples: int, seed: int) -> Sample:
    """Return the mean loss of the best layer found on fresh prompts, less that of the best linear layer on
    the same prompts, as a share of the latter's risk. Every other start has keys unlike the query."""
    seen, rng = draw(generator(seed, "search"), dim, context, samples), generator(seed, "search", heads)
    begun = [rng.uniform(-2, 2, heads) / dim**0.5 for _ in range(starts)]
    begun = [np.concatenate([[(-1) ** (k + 1) * abs(x_H[0])], x_H[1:]]) for k, x_H in enumerate(begun)]
    how = {"jac": True, "method": "L-BFGS-B", "bounds": [(-LARGEST, LARGEST)] * heads}
    ends = [minimize(lambda k_H: fit(k_H, seen)[:2], x_H, **how) for x_H in begun]
    k_H = min(ends, key=lambda end: end.fun).x
    b_H, rng, above = fit(k_H, seen)[2], generator(seed, "eval"), []
    for _ in range(TEST):
        fresh = draw(rng, dim, context, samples)
        linear_B = isotropic_step(dim, context) * (fresh.score_BN * fresh.label_BN).mean(1)
        losses = [np.square(at_B - fresh.target_B) for at_B in (read(k_H, fresh)[0] @ b_H, linear_B)]
        above.append(losses[0] - losses[1])
    above_B = np.concatenate(above) / isotropic_risk(dim, context)
    return Sample(float(above_B.mean()), float(above_B.std()) / len(above_B) ** 0.5)
