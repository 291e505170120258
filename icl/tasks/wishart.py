"""Wishart matrices by Bartlett's decomposition: O(D^2) random numbers for any number of tokens.

B draws, the last axis of factors and of what is made of them: NumPy's inner loop then goes over the draws,
where LAPACK and BLAS are called once for each tiny matrix.
"""

import numpy as np

from icl.kernel.normal import Array, standard_normal

SMALL = (
    16  # rows of a matrix up to which one loop over all draws is faster than a BLAS call for each (measured)
)


def bartlett_factor(rng: np.random.Generator, n: int, dim: int, batch: int) -> Array:
    """Return F, (dim, min(n, dim), B), with F F^T = sum_{i<=n} x_i x_i^T in law, x_i ~ N(0, I): triangular or
    for n < dim the x_i themselves."""
    if n < dim:
        return standard_normal(rng, (dim, n, batch))
    F_DDB = np.zeros((dim, dim, batch))
    below = np.tril_indices(dim, -1)
    F_DDB[below] = standard_normal(rng, (len(below[0]), batch))
    for i in range(dim):
        F_DDB[i, i] = np.sqrt(rng.chisquare(n - i, batch))
    return F_DDB


def squares(F_IKB: Array) -> Array:
    """Return F F^T of each draw, (I, I, B)."""
    if len(F_IKB) <= SMALL:
        return np.asarray(np.einsum("ikb,jkb->ijb", F_IKB, F_IKB))
    F_BIK = np.ascontiguousarray(np.moveaxis(F_IKB, -1, 0))
    return np.ascontiguousarray(np.moveaxis(F_BIK @ F_BIK.transpose(0, 2, 1), 0, -1))


def draw_wishart(rng: np.random.Generator, n: int, dim: int, batch: int) -> Array:
    """Return `batch` draws of W = sum_{i<=n} x_i x_i^T, x_i ~ N(0, I), shape (B, D, D)."""
    return np.moveaxis(squares(bartlett_factor(rng, n, dim, batch)), -1, 0)
