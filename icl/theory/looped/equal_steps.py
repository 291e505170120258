"""One layer applied L times at a multiple of the identity, in any dimension d.

In whitened coordinates the risk of L equal layers A is f(A) = E |(I - A^T G)^L|_F^2, G = W / n with
W ~ Wishart_d(n, I). At A = a I it is E tr (I - a G)^(2L), convex in a. The second derivative at a I along an
antisymmetric K is |K|_F^2 times one polynomial in a, whatever K, and so it is along a symmetric matrix of
trace 0: the eigenvectors of G are Haar.
"""

from dataclasses import dataclass
from functools import cached_property
from math import comb

from flint import arb, ctx, fmpq, fmpq_poly

from icl.theory.roots import evaluate, least
from icl.theory.wishart import best_polynomial, covariance_moments, product_moment

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
        return covariance_moments(self.dim, self.context, 2 * self.layers + 2)

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

    @cached_property
    def separate_risk(self) -> fmpq:
        """Return the least risk of L layers a_l I that may differ: E tr q(G)^2 over all polynomials q, q(0) =
        1."""
        return best_polynomial(self.moments, self.layers)[1]

    @cached_property
    def antisymmetric_curvature(self) -> fmpq_poly:
        """Return c(a) with f(a I + b K) = f(a I) + c(a) b^2 + O(b^4), K antisymmetric of Frobenius norm 1."""
        return self.curvatures(-1)[0]

    @cached_property
    def symmetric_curvature(self) -> fmpq_poly:
        """Return c(a) with f(a I + h H) = f(a I) + c(a) h^2 + O(h^3), H symmetric of trace 0 and norm 1."""
        return self.curvatures(1)[0]

    def curvatures(self, sign: int) -> tuple[fmpq_poly, fmpq_poly]:
        """Return c(a) along X of norm 1 and trace 0 with X^T = sign X, and that of E tr (I - A G)^(2L).

        With m = 1 - a g for an eigenvalue g of G and h_k the sum of m_p^i m_q^(k-1-i), the second is that of
        the eigenvalues alone, L X_pq X_qp g_p g_q h_(2L-1), and the first has X_pq^2 (g_p - sign g_q)^2 h_L^2
        / 2 beside it. In the eigenbasis of G, which is Haar, E X_pq^2 is `off` and E X_pp^2 is `on`.
        """
        d, L = self.dim, self.layers
        if d == 1:
            return fmpq_poly(), fmpq_poly()
        off = fmpq(1, (d - 1) * (d + 1 + sign))
        on = (1 - d * (d - 1) * off) / d
        top = 2 * L - 2
        squared = [min(k, top - k) + 1 for k in range(top + 1)]  # of h_L
        diagonal = fmpq_poly([(-1) ** k * comb(top, k) * self.moments[k + 2] for k in range(top + 1)])
        eigenvalues = L * (sign * off * self._pairs([1] * (top + 1), 1, 1) + (top + 1) * on * diagonal)
        gap = off * (self._pairs(squared, 0, 2) - sign * self._pairs(squared, 1, 1))
        return eigenvalues + gap, eigenvalues

    def curvature_sign(self) -> int:
        """Return the sign of `antisymmetric_curvature` at the best a, 0 where no ball can tell it."""
        for bits in BITS:
            with ctx.workprec(bits):
                there = evaluate(self.antisymmetric_curvature, self.optimum[0])
                if there != 0 and not there.contains(0):
                    return 1 if there > 0 else -1
        return 0

    def _pairs(self, counts: list[int], s: int, t: int) -> fmpq_poly:
        """E sum_(p != q) g_p^s g_q^t sum_k count_k m_p^k m_q^(2L-2-k), a polynomial in a."""
        d, n, top = self.dim, self.context, len(counts) - 1
        total = [fmpq(0)] * len(counts)
        for k, count in enumerate(counts):
            for i in range(k + 1):
                for j in range(top - k + 1):
                    powers = (i + s, j + t)
                    pair = product_moment(powers, d, n) - product_moment((sum(powers),), d, n)
                    signed = (-1) ** (i + j) * comb(k, i) * comb(top - k, j) * count
                    total[i + j] += fmpq(signed * pair, n ** sum(powers))
        return fmpq_poly(total)
