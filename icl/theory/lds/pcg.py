"""A layer on AR(s) tokens as section 5 writes it, and preconditioned conjugate gradients on L_AR(s).

The Gram matrix is [[H, g], [g^T, g0]], H the Hessian of L_AR(s) and g minus its gradient at 0; W_QK's rows
are [P, p] and W_V's last column is (q, c_N).
"""

from __future__ import annotations

from collections.abc import Sequence

from flint import fmpq, fmpq_mat

from icl.theory.rationals import ZERO, column, dot, matrix


class Section5:
    def __init__(self, b: Sequence[fmpq], keys: Sequence[Sequence[fmpq]], G: fmpq_mat) -> None:
        s = len(keys)
        self.P, self.p = matrix(row[:s] for row in keys), column(row[s] for row in keys)
        self.q, self.c_N = column(b[:s]), b[s]
        self.H = matrix([G[i, j] for j in range(s)] for i in range(s))
        self.g, self.g0 = column(G[i, s] for i in range(s)), G[s, s]

    def weights(self) -> fmpq_mat:
        """Return w of the answer w.x: P H q + (p q^T + c_N P) g + c_N g0 p."""
        return self.seventeen(self.P) + self.c_N * self.g0 * self.p

    def seventeen(self, first: fmpq_mat) -> fmpq_mat:
        """Return eq. (17), first H q + (p q^T + c_N P) g: `first` is Gamma + P, or as printed Gamma H + P."""
        return first * self.H * self.q + (self.p * self.q.transpose() + self.c_N * self.P) * self.g

    def gamma(self) -> fmpq_mat:
        """Return Gamma = c_N g0 p q^T / (q^T H q)."""
        return self._rank_one(self.q)

    def of_e3(self) -> fmpq_mat:
        """Return E.3's P' = c_N g0 p v^T / (v^T v), v = H q."""
        return self._rank_one(self.H * self.q)

    def _rank_one(self, v: fmpq_mat) -> fmpq_mat:
        return self.c_N * self.g0 / dot(v, self.H * self.q) * self.p * v.transpose()

    def two_steps(self) -> fmpq_mat:
        """Return w_2 of Shewchuk's algorithm from w_0 = 0, with preconditioner P^-1 and d_0 = q."""
        w, r, d = 0 * self.g, self.g, self.q
        delta = dot(r, d)
        for step in range(2):
            if step:
                v = self.P * r
                delta, before = dot(r, v), delta
                d = v + delta / before * d
            z = self.H * d
            alpha = delta / dot(d, z)
            w, r = w + alpha * d, r - alpha * z
        return w

    def expansion(self) -> fmpq_mat:
        """Return E.2's w_2 = [(alpha_0 + alpha_1 beta_1) H^-1 - alpha_0 alpha_1 P] H q + alpha_1 P g."""
        Hq = self.H * self.q
        first = dot(self.g, self.q)
        alpha_0 = first / dot(self.q, Hq)
        r = self.g - alpha_0 * Hq
        second = dot(r, self.P * r)
        beta_1 = second / first
        d = self.P * r + beta_1 * self.q
        alpha_1 = second / dot(d, self.H * d)
        return (
            (alpha_0 + alpha_1 * beta_1) * self.q
            - alpha_0 * alpha_1 * self.P * Hq
            + alpha_1 * self.P * self.g
        )


def neumann_error(mean_trace: fmpq, mean_square: fmpq, s: int, unit: fmpq = ZERO) -> fmpq:
    """Return E tr (I - u H)^2 / s from E tr H and E tr H^2: the error of 2 I - u H as the inverse of u H,
    mean over eigenvalues. `unit` u is that of y^2; 0 is the best one."""
    u = unit or mean_trace / mean_square
    return 1 - 2 * u * mean_trace / s + u**2 * mean_square / s
