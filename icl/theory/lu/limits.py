"""lu: errors of pretrained linear attention in the limit of many covariates d, with l = alpha d examples in a
prompt, k = kappa d pretraining tasks and n = tau d^2 pretraining prompts, labels with noise of variance rho.

Formulas as the code published with Lu, Letey, Zavatone-Veth, Maiti, Pehlevan (PNAS 2025, arXiv 2405.11751)
computes them; the paper's text was not at hand. e_ICL is the error on new tasks, e_IDG that on the
pretraining tasks. They are those of ridge regression on d^2 Gaussian features of covariance I x (x* + R), R
the tasks' second moment with Marchenko and Pastur's law; the tests integrate over this law instead.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.optimize import brentq


@dataclass(frozen=True)
class Limit:
    """Limits of the errors at alpha, kappa, tau and rho, of which kappa and tau may be infinite."""

    alpha: float
    kappa: float
    tau: float
    rho: float

    @property
    def x(self) -> float:
        """x* = (1 + rho) / alpha, what the examples' number leaves unknown of a task."""
        return (1 + self.rho) / self.alpha

    @property
    def icl(self) -> float:
        """Return e_ICL without ridge: the least norm of all weights that fit best."""
        x, tau, rho = self.x, self.tau, self.rho
        m, more = resolvent(self.kappa, x), 1 / self.kappa
        if tau == 1:
            return math.inf
        if tau < 1:
            mu = x * resolvent(self.kappa / tau, x)
            first = 1 - tau * (1 - mu) ** 2 - (x - rho) / x * mu
            return tau * (1 + x) / (1 - tau) * first - 2 * tau * (1 - mu) + rho + 1
        beyond = 1 / (tau - 1)
        many = 1 / (1 - more * (m / (1 + more * m)) ** 2)
        squares = (many - beyond) * (1 + x) * (x * m) ** 2
        return squares + (beyond - 2) * m * x**2 + ((1 + rho) * beyond * m + 1) * x + rho * (m * beyond + 1)

    @property
    def idg(self) -> float:
        """Return e_IDG without ridge."""
        x, tau, rho, more = self.x, self.tau, self.rho, 1 / self.kappa
        if tau == 1:
            return math.inf
        if tau > 1:
            return (1 + 1 / (tau - 1)) * (rho + x * (1 - x * resolvent(self.kappa, x)))
        mu = x * resolvent(self.kappa / tau, x)
        e = (1 - tau) * x / (tau * mu)
        c = 1 / (1 - more / (more + e / (1 - tau)) ** 2)
        noise = rho + x - 2 * x * (1 - tau) * (x / e + 1)
        return tau * ((x + e) ** 2 / e + noise / (1 - tau - c * (1 - tau) ** 2))

    def ridge(self, ridge: float) -> tuple[float, float]:
        """Return (e_ICL, e_IDG) with a ridge above 0; e_IDG is -tau c_e."""
        x, tau, rho, more = self.x, self.tau, self.rho, 1 / self.kappa
        e = self.effective_ridge(ridge)
        nu = x + e
        S = resolvent(self.kappa, nu)
        root = math.hypot(nu + 1 - more, 2 * math.sqrt(nu * more))
        slope = -(S**2) / 2 * (1 + (nu + 1 + more) / root)
        share = 1 - 2 * nu * S - nu**2 * slope
        c = (rho + nu - nu**2 * S - e * share) / (1 - 2 * e * S - e**2 * slope - tau)
        new = (x + 1) * (share - c * (S + e * slope)) - 2 * (1 - nu * S) + 1 + rho
        return new, -tau * c

    def effective_ridge(self, ridge: float) -> float:
        """Return the root e of 1 - tau + tau ridge / e - e M(e + x*), of which there is exactly one: it
        falls, since e M(e + x*) = E e / (e + x* + r) grows, from infinity to -tau. It is positive at e =
        ridge, where 1 - e M > 0, and negative beyond ridge + (1 + x*) / tau, since M(z) >= 1 / (z + 1)."""
        x, tau = self.x, self.tau

        def excess(e: float) -> float:
            return 1 - tau + tau * ridge / e - e * resolvent(self.kappa, e + x)

        high = (ridge + (1 + x) / tau) * (1 + 1e-9)
        return float(brentq(excess, ridge, high, xtol=1e-300, rtol=1e-15))


def resolvent(kappa: float, x: float) -> float:
    """Return M_kappa(x) = E 1 / (x + r), r of Marchenko and Pastur's law of k = kappa d tasks, of mean 1."""
    more = 1 / kappa
    centre = x + 1 - more
    root = math.hypot(centre, 2 * math.sqrt(x * more))
    return 2 / (centre + root) if centre > 0 else kappa * (root - centre) / (2 * x)
