"""One layer applied L times at a multiple of the identity, in any dimension d.

In whitened coordinates the risk of L equal layers A is f(A) = E |(I - A^T G)^L|_F^2, G = W / n with
W ~ Wishart_d(n, I). At A = a I it is E tr (I - a G)^(2L), convex in a. The second derivative at a I along an
antisymmetric K is |K|_F^2 times one polynomial in a, whatever K, and so it is along a symmetric matrix of
trace 0: the eigenvectors of G are Haar.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import comb

from flint import arb, ctx, fmpq, fmpq_poly

from icl.theory.roots import evaluate, least
from icl.theory.wishart import best_polynomial, product_moment, trace_moment

BITS = (64, 128, 256, 512, 1024)


@dataclass(frozen=True)
class EqualSteps:
    """The risk of `layers` equal steps a I, and of as many steps that may differ."""

    dim: int
    context: int
    layers: int

    @cached_property
    def moments(self) -> list[fmpq]:
        """E tr G^k."""
        degrees = range(2 * self.layers + 2)
        return [fmpq(trace_moment(k, self.dim, self.context), self.context**k) for k in degrees]

    @cached_property
    def polynomial(self) -> fmpq_poly:
        """f(a I) as a polynomial in a."""
        top = 2 * self.layers
        return fmpq_poly([(-1) ** k * comb(top, k) * self.moments[k] for k in range(top + 1)])

    @property
    def optimum(self) -> tuple[arb, arb]:
        """The best a and its risk, with the bits that balls have now."""
        return least(self.polynomial)

    @cached_property
    def as_floats(self) -> tuple[float, float]:
        """The best a and its risk to full double precision."""
        for bits in BITS:
            with ctx.workprec(bits):
                a, risk = self.optimum
                if min(a.rel_accuracy_bits(), risk.rel_accuracy_bits()) > 60:
                    break
        return float(a), float(risk)

    @property
    def best(self) -> float:
        return self.as_floats[0]

    @property
    def least_risk(self) -> float:
        return self.as_floats[1]

    def risk(self, a: float) -> float:
        """f(a I), the alternating sum in rationals."""
        return float(arb(self.polynomial(fmpq(*a.as_integer_ratio()))))

    @cached_property
    def separate_risk(self) -> fmpq:
        """Return the least risk of L layers a_l I that may differ: E tr q(G)^2 over all polynomials q, q(0) =
        1."""
        return best_polynomial(self.moments, self.layers)[1]

    @cached_property
    def antisymmetric_curvature(self) -> fmpq_poly:
        """Return c(a) with f(a I + b K) = f(a I) + c(a) b^2 + O(b^4), K antisymmetric of Frobenius norm 1."""
        d = self.dim
        return self._curvature(-1, fmpq(1, d * (d - 1)), fmpq(0)) if d > 1 else fmpq_poly()

    @cached_property
    def symmetric_curvature(self) -> fmpq_poly:
        """Return c(a) with f(a I + h H) = f(a I) + c(a) h^2 + O(h^3), H symmetric of trace 0 and norm 1."""
        d = self.dim
        if d == 1:
            return fmpq_poly()
        off = fmpq(1, (d - 1) * (d + 2))
        return self._curvature(1, off, 2 * off * fmpq(d - 1, d))

    @cached_property
    def eigenvalue_curvatures(self) -> tuple[fmpq_poly, fmpq_poly]:
        """Return the same coefficients of E tr (I - A G)^(2L), the sum over eigenvalues: along H, along K."""
        d = self.dim
        off, skew = fmpq(1, (d - 1) * (d + 2)), fmpq(1, d * (d - 1))
        along_h = self._of_eigenvalues(off, 2 * off * fmpq(d - 1, d))
        return along_h, self._of_eigenvalues(-skew, fmpq(0))

    def curvature_sign(self) -> int:
        """Return the sign of `antisymmetric_curvature` at the best a, 0 where no ball can tell it."""
        for bits in BITS:
            with ctx.workprec(bits):
                there = evaluate(self.antisymmetric_curvature, self.optimum[0])
                if there != 0 and not there.contains(0):
                    return 1 if there > 0 else -1
        return 0

    def _curvature(self, transposed: int, off: fmpq, diagonal: fmpq) -> fmpq_poly:
        """Return the coefficient of the second order along X with X^T = transposed X.

        With m = 1 - a g for an eigenvalue g of G, the first-order term of M^L is X_pq g_q h, h the sum of
        m_p^i m_q^(L-1-i), and the second-order term's part along M_0^L is X_pq X_qp g_p g_q m_p^L dh/dm_p.
        In the eigenbasis of G, which is Haar, E X_pq^2 is `off` and E X_pp^2 is `diagonal`.
        """
        L = self.layers
        total = [fmpq(0)] * (2 * L - 1)
        for i in range(L):
            for k in range(L):
                self._add(total, (i + k, 2 * L - 2 - i - k), (0, 2), off)
        for j in range(L - 1):
            self._add(total, (2 * L - 2 - j, j), (1, 1), 2 * transposed * (L - 1 - j) * off)
        return fmpq_poly(total) + self._on_diagonal(diagonal)

    def _of_eigenvalues(self, off: fmpq, diagonal: fmpq) -> fmpq_poly:
        """Return L sum_i tr M^i X G M^(2L-2-i) X G, where E X_pq X_qp is `off`."""
        L, total = self.layers, [fmpq(0)] * (2 * self.layers - 1)
        for i in range(2 * L - 1):
            self._add(total, (i, 2 * L - 2 - i), (1, 1), L * off)
        return fmpq_poly(total) + self._on_diagonal(diagonal)

    def _on_diagonal(self, diagonal: fmpq) -> fmpq_poly:
        """Return L (2L - 1) E sum_p g_p^2 m_p^(2L-2) times E X_pp^2."""
        top, ways = 2 * self.layers - 2, self.layers * (2 * self.layers - 1) * diagonal
        return fmpq_poly([(-1) ** k * comb(top, k) * ways * self.moments[k + 2] for k in range(top + 1)])

    def _add(self, total: list[fmpq], of_m: tuple[int, int], of_g: tuple[int, int], count: fmpq) -> None:
        """Add count E sum_(p != q) m_p^i m_q^j g_p^s g_q^t with (i, j) = of_m and (s, t) = of_g."""
        for k in range(of_m[0] + 1):
            for m in range(of_m[1] + 1):
                signed = (-1) ** (k + m) * comb(of_m[0], k) * comb(of_m[1], m) * count
                total[k + m] += signed * self._pairs(k + of_g[0], m + of_g[1])

    def _pairs(self, i: int, j: int) -> fmpq:
        """E sum over p != q of g_p^i g_q^j."""
        d, n = self.dim, self.context
        return fmpq(product_moment((i, j), d, n) - product_moment((i + j,), d, n), n ** (i + j))
