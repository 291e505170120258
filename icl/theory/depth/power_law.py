"""Eigenvalues lambda_k = k^-nu with lambda_k omega_k = k^(-nu beta - 1), k = 1, 2, ..: losses in balls.

A sum over k of a function that rises to a peak and then falls differs from its integral from 1 on by at most
the peak. So losses are enclosed at any time and depth, however large, and their exponents with them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from flint import arb, fmpq

from icl.theory.rationals import rational

AROUND = arb(0, 1)  # [-1, 1]
EARLY, LATE = 10**400, 10**600  # the relative error of a sum may fall as slowly as t^(-1 / 49)


@dataclass(frozen=True)
class PowerLaw:
    nu: fmpq
    beta: fmpq

    @classmethod
    def at(cls, nu: float, beta: float) -> Self:
        return cls(rational(nu), rational(beta))

    def exponential(self, rate: arb, power: int = 0) -> arb:
        """Return sum_k lambda_k^(1 + power) omega_k exp(-rate lambda_k)."""
        a, edge = arb(self.beta + power), arb(self.beta + power + 1 / self.nu)
        peak = (edge / rate) ** edge * (-edge).exp()
        return rate**-a * rate.gamma_lower(a) / self.nu + peak * AROUND

    def time_slope(self, gamma: arb) -> arb:
        """Return d log L / d log t where gamma' = sum lambda^2 omega exp(-2 gamma lambda) has come to gamma.

        u^(beta + 1) gamma' lies within `constant` from `early` on, where t is between 0 and early / gamma'.
        """
        b, early = arb(self.beta), gamma.sqrt()
        speed = self.exponential(2 * early, 1)
        rest = speed * early ** (b + 1) - (2 * early).gamma_lower(b + 1) / (2 ** (b + 1) * self.nu)
        first = (2 * early).gamma_lower(b + 1).union((b + 1).gamma())
        constant = first / (2 ** (b + 1) * self.nu) + rest
        time = (gamma ** (b + 2) - early ** (b + 2)) / ((b + 2) * constant)
        time += (early / speed).union(arb(0))
        return -2 * self.exponential(2 * gamma, 1) ** 2 * time / self.exponential(2 * gamma)

    def fixed(self, tau: arb) -> arb:
        """Return sum_k lambda_k omega_k / (1 + tau omega_k lambda_k^3)."""
        b, two, top = arb(self.nu * self.beta), arb(2 * self.nu), arb(self.nu * self.beta + 2 * self.nu + 1)
        whole = tau ** (-b / top) * arb.pi() / top / (arb.pi() * (two + 1) / top).sin()
        below_one = (1 / ((two + 1) * tau)).union(arb(0))
        place = (two * tau / (b + 1)) ** (1 / top)
        return whole - below_one + place**two / (place**top + tau) * AROUND

    def shared(self, layers: arb) -> arb:
        """Return the least over g of sum_k lambda_k omega_k (1 - g lambda_k)^(2L), for large L.

        Above: g = 2 - beta log(L) / L. Below: g <= 2, since more has a risk above 1, and the terms with
        lambda <= L^-3/4 alone, where 1 - x >= exp(-x - x^2) at x = g lambda.
        """
        g = 2 - self.beta * layers.log() / layers
        beyond = (arb(2) ** (1 - arb(self.nu)) - 1).max(arb(0))
        above = self.exponential(2 * g * layers) + layers ** (-2 * arb(self.beta))
        total = 1 + 1 / arb(self.nu * self.beta)  # at least sum_k lambda_k omega_k
        above += total * beyond ** (2 * layers)
        head = total * (-4 * layers.root(4)).exp()
        return above.union((-8 / layers.sqrt()).exp() * (self.exponential(4 * layers) - head))

    def deflated(self, layers: int) -> tuple[int, int, int]:
        """Return m, n, r of steps that are 1 / lambda_k for k <= m, and the rest r copies of the roots of
        (1 - T_n(1 - 2 s)) / (2 n^2 s), s = lambda / lambda_m."""
        r = int(((self.beta + fmpq(1, 2)) / 2).floor()) + 1
        m = layers // 2
        return m, (layers - m) // r + 1, r

    def steps(self, layers: int) -> list[arb]:
        """Return them."""
        m, n, r = self.deflated(layers)
        top = arb(m) ** self.nu
        return [arb(k) ** self.nu for k in range(1, m + 1)] + [
            top / (arb.pi() * j / n).sin() ** 2 for j in range(1, n) for _ in range(r)
        ]

    def summed(self, steps: list[arb], dim: int, removed: int = 0) -> arb:
        """Return the risk of steps g_l that remove the first `removed` eigenvalues: terms up to `dim` and to
        1 / lambda_k of the last step, and what is left, whose errors lie from 0 to exp(-lambda sum_l g_l)."""
        last = int(max(float(g) for g in steps) ** (1 / float(arb(self.nu))))
        dim = max(dim, last + 1)
        left = arb(dim) ** -(self.nu * self.beta) / (self.nu * self.beta)
        total = left.min(self.exponential(2 * sum(steps, arb(0)))).union(arb(0))
        for k in range(removed + 1, dim + 1):
            eigenvalue, left = arb(k) ** -self.nu, arb(1)
            for g in steps:
                left *= 1 - g * eigenvalue
            total += left**2 * eigenvalue**self.beta / k
        return total

    def separate_bound(self, layers: int) -> arb:
        """Return a bound of their risk, proved in docs/notes/depth.md."""
        m, n, _ = self.deflated(layers)
        return self._shape * arb(m) ** -(self.nu * self.beta) * arb(n) ** (-2 * self.beta)

    @property
    def separate_constant(self) -> arb:
        """Return C: the bound is at most C L^(-beta (2 + nu)), since m >= L / 3 and n >= L / (2 r)."""
        r = self.deflated(2)[2]
        return self._shape * arb(3) ** (self.nu * self.beta) * arb(2 * r) ** (2 * self.beta)

    @property
    def _shape(self) -> arb:
        r = self.deflated(2)[2]
        return 1 + 1 / arb(self.nu * self.beta) + 1 / arb(self.nu * (2 * r - self.beta))


def slope(loss: Callable[[arb], arb]) -> arb:
    """Return the slope of log loss between EARLY and LATE."""
    return (loss(arb(LATE)) / loss(arb(EARLY))).log() / arb(LATE // EARLY).log()
