"""One layer applied L times at a multiple of the identity, in any dimension d.

In whitened coordinates the risk of L equal layers A is f(A) = E |(I - A^T G)^L|_F^2, G = W / n with
W ~ Wishart_d(n, I). At A = a I it is E tr (I - a G)^(2L), convex in a. The second derivative at a I along an
antisymmetric K is |K|_F^2 times one polynomial in a, whatever K, and so it is along a symmetric matrix of
trace 0: the eigenvectors of G are Haar.

J nodes of a Gauss rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import comb

import numpy as np

from icl.theory.looped.polynomials import Polynomial, derivative, polynomial, real_roots, root_near, value
from icl.theory.quadrature import gauss_rule, smallest_square
from icl.theory.wishart import product_moment, trace_moment

MAX_LAYERS = 12  # the second derivative takes products of two traces of degree 2 L together
WIDTH = Fraction(1, 10**18)  # of the interval that has the best a


@dataclass(frozen=True)
class EqualSteps:
    """The risk of `layers` equal steps a I, and of as many steps that may differ."""

    dim: int
    context: int
    layers: int

    @cached_property
    def moments(self) -> list[Fraction]:
        """E tr G^k."""
        degrees = range(2 * self.layers + 2)
        return [Fraction(trace_moment(k, self.dim, self.context), self.context**k) for k in degrees]

    @cached_property
    def polynomial(self) -> Polynomial:
        """f(a I) as a polynomial in a."""
        top = 2 * self.layers
        return polynomial([(-1) ** k * comb(top, k) * self.moments[k] for k in range(top + 1)])

    def risk(self, a: float) -> float:
        """f(a I) by a Gauss rule: a sum of squares, to full double precision."""
        nodes_J, weights_J = gauss_rule(self.moments, self.layers + 1)
        return float(weights_J @ (1 - a * nodes_J) ** (2 * self.layers))

    @cached_property
    def interval(self) -> tuple[Fraction, Fraction]:
        """Rationals around the best a: f(a I) is convex, and its derivative has one root."""
        slope = derivative(self.polynomial)
        high = Fraction(1)
        while value(slope, high) <= 0:
            high *= 2
        return root_near(slope, Fraction(0), high, WIDTH)

    @property
    def best(self) -> float:
        low, high = self.interval
        return float((low + high) / 2)

    @property
    def least_risk(self) -> float:
        return self.risk(self.best)

    @cached_property
    def separate_risk(self) -> Fraction:
        """Return the least risk of L layers a_l I that may differ: of all polynomials q with q(0) = 1."""
        return smallest_square(self.moments, self.layers)

    @cached_property
    def antisymmetric_curvature(self) -> Polynomial:
        """Return c(a) with f(a I + b K) = f(a I) + c(a) b^2 + O(b^4), K antisymmetric of Frobenius norm 1."""
        d = self.dim
        return self._curvature(-1, Fraction(1, d * (d - 1)), Fraction(0)) if d > 1 else ()

    @cached_property
    def symmetric_curvature(self) -> Polynomial:
        """Return c(a) with f(a I + h H) = f(a I) + c(a) h^2 + O(h^3), H symmetric of trace 0 and norm 1."""
        d = self.dim
        if d == 1:
            return ()
        off = Fraction(1, (d - 1) * (d + 2))
        return self._curvature(1, off, 2 * off * Fraction(d - 1, d))

    def curvature_sign(self) -> int:
        """Return the sign of `antisymmetric_curvature` at the best a: 1, -1, or 0 where a rational interval
        cannot tell."""
        low, high = self.interval
        ends = {_sign(value(self.antisymmetric_curvature, end)) for end in (low, high)}
        if len(ends) > 1 or real_roots(self.antisymmetric_curvature, low, high):
            return 0
        return ends.pop()

    def _curvature(self, transposed: int, off: Fraction, diagonal: Fraction) -> Polynomial:
        """Return the coefficient of the second order along X with X^T = transposed X.

        With m = 1 - a g for an eigenvalue g of G, the first-order term of M^L is X_pq g_q h, h the sum of
        m_p^i m_q^(L-1-i), and the second-order term's part along M_0^L is X_pq X_qp g_p g_q m_p^L dh/dm_p.
        In the eigenbasis of G, which is Haar, E X_pq^2 is `off` and E X_pp^2 is `diagonal`.
        """
        L = self.layers
        total = [Fraction(0)] * (2 * L - 1)
        for i in range(L):
            for k in range(L):
                self._add(total, (i + k, 2 * L - 2 - i - k), (0, 2), off)
        for j in range(L - 1):
            self._add(total, (2 * L - 2 - j, j), (1, 1), 2 * transposed * (L - 1 - j) * off)
        for k in range(2 * L - 1):  # L^2 + L (L - 1) times g^2 m^(2 L - 2)
            count = (-1) ** k * comb(2 * L - 2, k) * L * (2 * L - 1)
            total[k] += diagonal * count * self.moments[k + 2]
        return polynomial(total)

    def _add(
        self, total: list[Fraction], of_m: tuple[int, int], of_g: tuple[int, int], count: Fraction
    ) -> None:
        """Add count E sum_(p != q) m_p^i m_q^j g_p^s g_q^t with (i, j) = of_m and (s, t) = of_g."""
        for k in range(of_m[0] + 1):
            for m in range(of_m[1] + 1):
                signed = (-1) ** (k + m) * comb(of_m[0], k) * comb(of_m[1], m) * count
                total[k + m] += signed * self._pairs(k + of_g[0], m + of_g[1])

    def _pairs(self, i: int, j: int) -> Fraction:
        """E sum over p != q of g_p^i g_q^j."""
        d, n = self.dim, self.context
        return Fraction(product_moment((i, j), d, n) - product_moment((i + j,), d, n), n ** (i + j))


def antisymmetric(dim: int, b: np.ndarray | float) -> np.ndarray:
    """Return the direct sum of blocks [[0, -b_j], [b_j, 0]], with a zero at the end of an odd dimension."""
    K_DD = np.zeros((dim, dim))
    rows = 2 * np.arange(dim // 2)
    K_DD[rows, rows + 1], K_DD[rows + 1, rows] = -np.asarray(b), np.asarray(b)
    return K_DD


def _sign(x: Fraction) -> int:
    return (x > 0) - (x < 0)
