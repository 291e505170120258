"""Closed forms of xie in floats, as figures draw them; icl.theory.xie.heads has the risks that they are.

x ~ N(0, I), w ~ N(w*, I), C labels w.x without noise. D covariates, H heads, C `context` tokens.
"""

from __future__ import annotations


def gd_risk(dim: int, context: int) -> float:
    """Return the risk D (D + 1) / (C + D + 1) of one gradient step from w* with the best step size."""
    _check_sizes(dim, context)
    return dim * (dim + 1) / (context + dim + 1)


def gap_slope(dim: int, context: int) -> float:
    """Return 2 / (D C + 2): what the least risk of any heads is above that, for each unit of |w* - v|^2 +
    b^2."""
    _check_sizes(dim, context)
    return 2 / (dim * context + 2)


def lost_slope(dim: int, context: int, heads: int) -> float:
    """Return what H heads lose at least on the least risk, for each unit of |w* - v|^2 + b^2: tau^2 kappa rho
    / (kappa + rho), with tau = C / (D C + 2), kappa = 2 (D - H) (D C + 2) / (C (H C + 2)), rho = 2 E tr
    S^2."""
    _check_sizes(dim, context)
    if heads < 0:
        raise ValueError(f"heads={heads}: must be at least 0")
    kappa = 2 * max(dim - heads, 0) * (dim * context + 2) / (context * (heads * context + 2))
    rho = 2 * dim * (1 + (dim + 1) / context)
    return (context / (dim * context + 2)) ** 2 * kappa * rho / (kappa + rho)


def _check_sizes(dim: int, context: int) -> None:
    if dim < 1 or context < 1:
        raise ValueError(f"dim={dim}, context={context}: must both be at least 1")
