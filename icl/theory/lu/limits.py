"""lu: errors of pretrained linear attention in the limit of many covariates d, in balls: l = alpha d examples
in a prompt, k = kappa d pretraining tasks and n = tau d^2 pretraining prompts, label noise of variance rho.

Formulas as the code published with Lu, Letey, Zavatone-Veth, Maiti, Pehlevan (PNAS 2025, arXiv 2405.11751)
computes them; the paper's text was not at hand. e_ICL is the error on new tasks, e_IDG that on the
pretraining tasks. They are those of ridge regression on d^2 Gaussian features of covariance I x (x* + R), R
the tasks' second moment with Marchenko and Pastur's law.
"""

import math
from dataclasses import dataclass
from typing import Any, Self

from flint import arb, ctx, fmpq, fmpq_series

from icl.theory.marchenko_pastur import resolvent, root
from icl.theory.rationals import rational

PLOTTED = 80  # bits of what is drawn


@dataclass(frozen=True)
class Limit:
    """alpha and rho, 1/kappa and 1/tau: 0 where tasks or prompts have no end."""

    alpha: fmpq
    more: fmpq
    fewer: fmpq
    rho: fmpq

    @classmethod
    def at(cls, alpha: float | fmpq, kappa: float | fmpq, tau: float | fmpq, rho: float | fmpq) -> Self:
        return cls(rational(alpha), inverse(kappa), inverse(tau), rational(rho))

    @property
    def x(self) -> fmpq:
        """x* = (1 + rho) / alpha, what the examples' number leaves unknown of a task."""
        return (1 + self.rho) / self.alpha

    @property
    def icl(self) -> arb:
        """Return e_ICL without ridge, of the least norm of all weights that fit best; infinite at tau = 1."""
        x, rho, more, fewer = self.x, self.rho, self.more, self.fewer
        if fewer == 1:
            return arb("inf")
        if fewer > 1:
            tau = 1 / fewer
            mu = x * resolvent(more * tau, arb(x))
            first = 1 - tau * (1 - mu) ** 2 - (x - rho) / x * mu
            return tau * (1 + x) / (1 - tau) * first - 2 * tau * (1 - mu) + rho + 1
        m, beyond = resolvent(more, arb(x)), fewer / (1 - fewer)
        many = 1 / (1 - more * (m / (1 + more * m)) ** 2)
        squares = (many - beyond) * (1 + x) * (x * m) ** 2
        return squares + (beyond - 2) * m * x**2 + ((1 + rho) * beyond * m + 1) * x + rho * (m * beyond + 1)

    @property
    def idg(self) -> arb:
        """Return e_IDG without ridge."""
        x, rho, more, fewer = self.x, self.rho, self.more, self.fewer
        if fewer == 1:
            return arb("inf")
        if fewer < 1:
            return (rho + x * (1 - x * resolvent(more, arb(x)))) / (1 - fewer)
        tau = 1 / fewer
        mu = x * resolvent(more * tau, arb(x))
        e = (1 - tau) * x / (tau * mu)
        c = 1 / (1 - more / (more + e / (1 - tau)) ** 2)
        noise = rho + x - 2 * x * (1 - tau) * (x / e + 1)
        return tau * ((x + e) ** 2 / e + noise / (1 - tau - c * (1 - tau) ** 2))

    def errors(self, effective: arb) -> tuple[arb, arb]:
        """Return (e_ICL, e_IDG), given the effective ridge."""
        x, rho, more = self.x, self.rho, self.more
        nu = x + effective
        S = resolvent(more, nu)
        slope = -(S**2) / 2 * (1 + (nu + 1 + more) / root(nu, more))
        share = 1 - 2 * nu * S - nu**2 * slope
        used = self.fewer * (1 - 2 * effective * S - effective**2 * slope)
        old = (rho + nu - nu**2 * S - effective * share) / (1 - used)
        new = (x + 1) * (share + self.fewer * old * (S + effective * slope)) - 2 * (1 - nu * S) + 1 + rho
        return new, old

    def excess(self, e: arb, ridge: fmpq) -> arb:
        """1/tau - 1 + ridge / e - e M(e + x*) / tau, whose root in e > 0 is the effective ridge."""
        return self.fewer - 1 + ridge / e - self.fewer * e * resolvent(self.more, e + self.x)

    def effective_ridge(self, ridge: fmpq) -> arb:
        """Return a ball with the one root, by halves between values with an excess of either sign. It falls,
        since ridge / e falls and e M(e + x*) = E e / (e + x* + r) grows. Ridge 0: the limit of small ones."""
        if ridge == 0 and self.fewer <= 1:
            return arb(0)
        low = ridge if ridge > 0 else (1 - 1 / self.fewer) * self.x / 2  # e M < e / x* < 1 - tau
        high = 2 * ridge + 1 + (1 + self.x) * self.fewer
        while not self.excess(arb(high), ridge) < 0:
            high *= 2
        for _ in range(2 * ctx.prec):
            middle = arb((low + high) / 2).mid().fmpq()  # of as many bits as balls have, else fractions grow
            value = self.excess(arb(middle), ridge)
            if value > 0 and middle > low:
                low = middle
            elif value < 0 and middle < high:
                high = middle
            else:
                break
        return arb(low).union(arb(high))


def plotted(alpha: float, kappa: float, tau: float, rho: float, ridge: float = 0.0) -> tuple[float, float]:
    """Return (e_ICL, e_IDG) as floats; without ridge closed forms, infinite at tau = 1."""
    with ctx.workprec(PLOTTED):
        limit = Limit.at(alpha, kappa, tau, rho)
        if ridge == 0:
            return float(limit.icl), float(limit.idg)
        new, old = limit.errors(limit.effective_ridge(rational(ridge)))
        return float(new), float(old)


def inverse(ratio: float | fmpq) -> fmpq:
    return fmpq(0) if ratio == math.inf else 1 / rational(ratio)


def gap_of_long_prompts(kappa: fmpq) -> fmpq:
    """Return the limit of e_ICL - e_IDG as tau, then alpha grow, as a series at x* = 0.

    At tau = infinity it is (1 + x) q^2 / (1 - more (q / (x + more q))^2) - x q, where q = x M(x) is the
    positive root of more q^2 + (x + 1 - more) q = x. At kappa = 1 the series is one in sqrt(x), as q is.
    """
    more: Any = fmpq_series([1 / kappa], prec=8)
    t: Any = fmpq_series([0, 1], prec=8)
    x = t * t if kappa == 1 else t
    square = (x + 1 - more) * (x + 1 - more) + 4 * more * x
    low = abs(1 - 1 / kappa)
    root = 2 * t * (1 + x / 4).sqrt() if kappa == 1 else low * (square / low**2).sqrt()
    q = (root - (x + 1 - more)) / (2 * more)
    ratio = _over(q, x + more * q)
    gap = _over((1 + x) * q * q, 1 - more * ratio * ratio) - x * q
    return fmpq(gap[0])


def _over(a: Any, b: Any) -> Any:
    """Divide, powers of the variable that both have taken out."""
    while b[0] == 0 and a[0] == 0:
        a, b = (fmpq_series([part[i] for i in range(1, 8)], prec=7) for part in (a, b))
    return a / b
