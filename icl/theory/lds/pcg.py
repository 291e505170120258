"""A layer on AR(s) tokens as section 5 writes it, and preconditioned conjugate gradients on L_AR(s).

The Gram matrix is [[H, g], [g^T, g0]], H the Hessian of L_AR(s) and g minus its gradient at 0; W_QK's rows
are [P, p] and W_V's last column is (q, c_N).
"""

from collections.abc import Sequence

from flint import fmpq, fmpq_mat

from icl.theory.rationals import column, dot, matrix


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

    def gamma(self, v: fmpq_mat) -> fmpq_mat:
        """Return Gamma = c_N g0 p v^T / (v^T H q) with v = q; with v = H q it is the P' of E.3."""
        return self.c_N * self.g0 / dot(v, self.H * self.q) * self.p * v.transpose()

    def two_steps(self) -> tuple[fmpq_mat, fmpq_mat]:
        """Return w_2 of Shewchuk's algorithm from w_0 = 0, with preconditioner P^-1 and d_0 = q, and E.2's
        [(alpha_0 + alpha_1 beta_1) H^-1 - alpha_0 alpha_1 P] H q + alpha_1 P g."""
        delta, z = dot(self.g, self.q), self.H * self.q
        alpha_0 = delta / dot(self.q, z)
        r = self.g - alpha_0 * z
        delta_1 = dot(r, self.P * r)
        beta_1 = delta_1 / delta
        d = self.P * r + beta_1 * self.q
        alpha_1 = delta_1 / dot(d, self.H * d)
        expansion = (alpha_0 + alpha_1 * beta_1) * self.q - alpha_0 * alpha_1 * self.P * z
        return alpha_0 * self.q + alpha_1 * d, expansion + alpha_1 * self.P * self.g
