"""Wishart draws that see a risk's tail: some have an inflated largest eigenvalue, and each has its weight.

Let W = (1/N) sum_i u_i u_i^T with u ~ N(0, I_D). Its eigenvectors are Haar and independent of its nonzero
eigenvalues s_1 > ... > s_m, m = min(D, N), whose density is

    f(s) ~ prod_i s_i^((|N - D| - 1)/2) exp(-N s_i / 2) prod_(i<j) (s_i - s_j).

Component c of the mixture draws W and multiplies s_1 by c >= 1. Its density is f(s_1 / c, s_2, ...) / c where
s_1 / c > s_2 and 0 elsewhere; over f,

    r_c = c^(-(|N - D| + 1)/2) exp(N s_1 (1 - 1/c)/2) prod_(j>1) (s_1/c - s_j)/(s_1 - s_j).

Every component has the same number of draws (up to one), share m_c. The weight of a draw is
1 / sum_c m_c r_c: unbiased for every function of W, and with c = 1 among the components at most 1 / m_1.

B draws, D = `dim`, C components.
"""

import math
from collections.abc import Sequence

import numpy as np

from icl.tasks.wishart import draw_wishart

INFLATIONS = (1.0, 1.3, 1.7, 2.2, 3.0)  # served three layers of ahn's eq. (11) at D = 5, N = 10 and 20
STEP = 1.3  # between components made by `inflations_for`: neighbours overlap


def inflations_for(degree: int, n: int, dim: int) -> tuple[float, ...]:
    """Components that cover what carries the mean of s_1^degree: a ladder of STEP to one rung beyond.

    s_1^degree f has its mode in s_1, far above the others, at (2/N) (degree + (|N - D| - 1)/2 + m - 1);
    plain draws end near (1 + sqrt(m/M))^2 M/N, M = max(D, N). Where the first is not beyond the second plain
    draws see all there is: (1,).
    """
    least, most = min(dim, n), max(dim, n)
    mode = 2 / n * (degree + (abs(n - dim) - 1) / 2 + least - 1)
    edge = (1 + math.sqrt(least / most)) ** 2 * most / n
    if mode <= edge:
        return (1.0,)
    rungs = math.ceil(math.log(mode / edge) / math.log(STEP)) + 1
    return tuple(STEP**rung for rung in range(rungs + 1))


def draw_tilted(
    rng: np.random.Generator, n: int, dim: int, batch: int, inflations: Sequence[float] = INFLATIONS
) -> tuple[np.ndarray, np.ndarray]:
    """(W, weight) with shapes (B, D, D) and (B,); neighbours are of different components, so that any long
    piece of the draws has them all."""
    W_BDD = draw_wishart(rng, n, dim, batch) / n
    c_B, s_B, top_BD, weight_B = tilt(W_BDD, n, inflations)
    W_BDD = W_BDD + ((c_B - 1) * s_B)[:, None, None] * top_BD[:, :, None] * top_BD[:, None, :]
    return W_BDD, weight_B


def tilt(
    W_BDD: np.ndarray, n: int, inflations: Sequence[float]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(c, s_1, its eigenvector, weight) of each draw: with s_1 multiplied by c it has this weight."""
    c_B = np.asarray(inflations)[np.arange(len(W_BDD)) % len(inflations)]
    s_BD, U_BDD = np.linalg.eigh(W_BDD)
    first_B = s_BD[:, -1].copy()
    s_BD[:, -1] *= c_B
    counts_C = np.bincount(np.arange(len(W_BDD)) % len(inflations), minlength=len(inflations))
    weight_B = 1 / (density_ratios(s_BD, n, inflations) @ (counts_C / len(W_BDD)))
    return c_B, first_B, U_BDD[:, :, -1], weight_B


def density_ratios(s_BD: np.ndarray, n: int, inflations: Sequence[float]) -> np.ndarray:
    """r_c at draws with these eigenvalues in rising order, shape (B, C); for n < D the lowest are 0."""
    dim = s_BD.shape[1]
    first_B1, others_BJ = s_BD[:, -1:], s_BD[:, max(dim - n, 0) : -1]
    power = (abs(n - dim) + 1) / 2
    ratios = []
    for c in inflations:
        gaps_BJ = (first_B1 / c - others_BJ) / (first_B1 - others_BJ) if c != 1 else np.ones_like(others_BJ)
        size_B = np.exp(n * first_B1[:, 0] * (1 - 1 / c) / 2 - power * np.log(c))
        ratios.append(np.where((gaps_BJ > 0).all(axis=1), size_B * gaps_BJ.prod(axis=1), 0.0))
    return np.stack(ratios, axis=1)
