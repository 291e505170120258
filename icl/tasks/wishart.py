"""Wishart matrices by Bartlett's decomposition: O(D^2) random numbers for any number of tokens."""

from __future__ import annotations

import numpy as np


def draw_wishart(rng: np.random.Generator, n: int, dim: int, batch: int) -> np.ndarray:
    """`batch` draws of W = sum_{i<=n} x_i x_i^T, x_i ~ N(0, I); for n < dim from the factor itself."""
    if n < dim:
        factor_BDN = rng.standard_normal((batch, dim, n))
    else:
        factor_BDN = np.tril(rng.standard_normal((batch, dim, dim)), -1)
        degrees = n - np.arange(dim)
        factor_BDN[:, np.arange(dim), np.arange(dim)] = np.sqrt(rng.chisquare(degrees, (batch, dim)))
    return factor_BDN @ factor_BDN.transpose(0, 2, 1)
