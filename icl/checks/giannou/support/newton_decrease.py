"""The bound h of appendix E.1 on the decrease of one inexact Newton step: its values, slope and least G.

h(x) = -x^2/(1+x) + c + w*(delta), w*(t) = -t - log(1 - t), delta^2 = x^2/(1+x)^2 - 2c/(1+x) + c', with x the
Newton decrement, c = eps^T grad g and c' = eps^T Hess g eps. delta is a norm, so only delta^2 >= 0 occurs.

With s = x/(1+x) and u = 1 - s, h' < 0 where delta < D = 1 - k u^2, k = (s + c)/(s (1 + u)); for c' = 0 that
is G(s, c) = 1 + s - 2 k u + k^2 u^3 + 2 c > 0, bounded on cells by interval arithmetic.
"""

from __future__ import annotations

import numpy as np

SIXTH = 1 / 7  # s at x = 1/6


def h(x: np.ndarray, c: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return h, with nan where delta^2 < 0: no error has such c and z."""
    square = x**2 / (1 + x) ** 2 - 2 * c / (1 + x) + z
    delta = np.sqrt(np.where(square < 0, np.nan, square))
    return -(x**2) / (1 + x) + c - delta - np.log1p(-delta)


def slope(x: np.ndarray, c: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return dh/dx, with nan where delta^2 < 0: delta delta' = (x + c (1 + x)) / (1 + x)^3."""
    square = x**2 / (1 + x) ** 2 - 2 * c / (1 + x) + z
    delta = np.sqrt(np.where(square < 0, np.nan, square))
    top = x + c * (1 + x) - (x**2 + 2 * x) * (1 + x) * (1 - delta)
    return top / ((1 - delta) * (1 + x) ** 3)


def largest_at_sixth(y: float, z: float, cells: int) -> tuple[float, float]:
    """Return max h(1/6) over |c| <= y, 0 <= c' <= z, and how much the grid in c can miss.

    h grows with c', so c' = z. In c, dh/dc = 1 - (6/7) / (1 - delta) is at most 1 / (1 - delta) in size.
    """
    c = np.linspace(-y, y, cells + 1)
    values = h(np.full_like(c, 1 / 6), c, np.full_like(c, z))
    delta = np.sqrt(SIXTH**2 + 2 * y * (1 - SIXTH) + z)
    return float(np.nanmax(values)), float(y / cells / (1 - delta))


def off_printed(y: float, z: float, cells: int) -> float:
    """Compare h(1/6) with the function that appendix E.1 prints for it, with the root r where it needs one:
    -1/42 + y - log(1 - r) - r, r^2 = 1/49 - 12 y / 7 + z."""
    c = np.linspace(-y, y, cells + 1)
    root = np.sqrt(1 / 49 - 12 * c / 7 + z)
    printed = -1 / 42 + c - np.log(1 - root) - root
    return float(np.abs(h(np.full_like(c, 1 / 6), c, np.full_like(c, z)) - printed).max())


def slope_off() -> float:
    """Compare dh/dx with the derivative along the imaginary axis, h(x + i t) / t, which cancels nothing."""
    x, c = np.meshgrid(np.linspace(1 / 6, 1, 101), np.linspace(-0.06, 0.06, 101), indexing="ij")
    t, possible = 1e-30, x**2 / (1 + x) ** 2 - 2 * c / (1 + x) > 1e-3
    x, c = x[possible], c[possible]
    w = x + 1j * t
    delta = np.sqrt(w**2 / (1 + w) ** 2 - 2 * c / (1 + w))
    by_step = np.imag(-(w**2) / (1 + w) + c - delta - np.log(1 - delta)) / t
    return float(np.abs(slope(x, c, np.zeros(1)) - by_step).max())


def turn_off(x: float, z: float) -> float:
    """Return 0 where h' < 0 just before x and not just after, at c = 0 and c' = z."""
    before, after = slope(x * np.array([1 - 1e-6, 1 + 1e-6]), np.zeros(2), np.full(2, z))
    return 0.0 if before < 0 <= after else 1.0


def least_on_grid() -> float:
    """Return the least G on a grid of its own, by u G = D^2 - delta^2."""
    x, c = np.meshgrid(np.geomspace(1 / 6, 1e3, 2001), np.linspace(-0.06, 0.06, 121), indexing="ij")
    s, u = x / (1 + x), 1 / (1 + x)
    D = 1 - (s + c) / (s * (1 + u)) * u**2
    return float(((D**2 - s**2 + 2 * c * u) / u).min())


def own_z_off() -> float:
    """Compare own_bound_on_z with the largest over a grid of mu, as a share."""
    mu = np.exp(np.arange(-10, 10, 1e-4))
    eps = np.minimum(0.01, 0.04 * mu / (1 + mu))
    return abs(float((eps**2 * (1 + mu) / (4 * mu)).max()) / own_bound_on_z() - 1)


def own_bound_on_z() -> float:
    """Return sup over mu of eps^2 (1+mu)/(4 mu), eps = min(.01, .04 mu/(1+mu)): at .01 = .04 mu/(1+mu), mu =
    1/3.

    Below it is .0004 mu/(1+mu), above it .000025 (1+mu)/mu: rising, then falling.
    """
    return 0.0004 * (1 / 3) / (1 + 1 / 3)


def least_of_G(cells: int) -> float:
    """Return a lower bound of G over s in [1/7, 1], |c| <= .06: the cells' least, each by interval
    arithmetic."""
    s, c = np.linspace(SIXTH, 1, cells + 1), np.linspace(-0.06, 0.06, cells + 1)
    s0, s1, c0, c1 = s[:-1, None], s[1:, None], c[None, :-1], c[None, 1:]
    u0, u1 = 1 - s1, 1 - s0
    # s (1 + u) = s (2 - s) rises with s; s + c > 0
    k0, k1 = (s0 + c0) / (s1 * (2 - s1)), (s1 + c1) / (s0 * (2 - s0))
    return float((1 + s0 - 2 * k1 * u1 + k0**2 * u0**3 + 2 * c0).min())


def decreasing_up_to(z: float) -> float:
    """Return the largest x up to which h decreases at c = 0 and c' = z, by bisection on delta < D."""

    def decreases(x: float) -> bool:
        s = x / (1 + x)
        delta = np.sqrt(s**2 + z)
        return bool(delta < 1 - (1 - s) ** 2 / (2 - s))

    low, high = 1 / 6, 1e6
    for _ in range(200):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if decreases(middle) else (low, middle)
    return low


def largest_derivative(cells: int) -> float:
    """Return max h' over x in [1/6, 1], |c| <= .06, c' = 0, on a grid."""
    x, c = np.meshgrid(np.linspace(1 / 6, 1, cells + 1), np.linspace(-0.06, 0.06, cells + 1), indexing="ij")
    return float(np.nanmax(slope(x, c, np.zeros(1))))
