"""Own: the least risk of separate layers on isotropic covariates."""

from dataclasses import dataclass
from math import comb

from flint import fmpq

from icl.checks.depth.settings import OWN, Isotropic
from icl.checks.statement import Measured
from icl.theory.depth.steps import X, marchenko_pastur, orthogonal, shared, wishart
from icl.theory.roots import least, real_roots
from icl.theory.wishart import best_polynomial, mean_trace


@dataclass
class IsoClosedForm(Isotropic):
    where, title, origin = OWN, "Separate layers, isotropic covariates: the least risk", "icl"
    claim = "As D grows, P = alpha D, the least risk of L separate layers is 1 / (1 + alpha + .. + alpha^L)."
    formula = r"\min_g \int d\rho \prod_l (1 - g_l \lambda)^2 = \frac{1}{1 + \alpha + \dots + \alpha^L}"

    def measure(self, m: Measured) -> None:
        L, alpha = self.layers, self.alpha
        moments, family = marchenko_pastur(alpha, 2 * L + 2), orthogonal(alpha, L)
        inner = [mean_trace(moments, family[i] * family[j]) for i in range(L + 1) for j in range(i)]
        m.zero("orthogonal", inner, "inner products of the polynomials of the recurrence")
        m.control("that of lambda and 1", mean_trace(moments, X), of="orthogonal")
        values = [p(0) ** 2 / mean_trace(moments, p**2) - alpha**k for k, p in enumerate(family)]
        m.zero("values", values, "their squares at 0 over their squared norms less alpha^k")
        q, found = best_polynomial(moments, L)
        series = sum((alpha**k for k in range(L + 1)), fmpq(0))
        m.zero("difference", found - 1 / series, "least risk of L steps less the closed form")
        m.control("the form with L - 1 layers", found - 1 / (series - alpha**L), of="difference")
        missing = L - sum(1 for root in real_roots(q) if root > 0)
        m.zero("missing", missing, "L less the different positive roots of the best polynomial")
        at_dim = best_polynomial(wishart(self.dim, self.context, 2 * L + 1), L)[1]
        m.number("least_separate", at_dim, "least risk of separate layers at this D and P, over D")
        tied = least(shared(moments, L))[1]
        m.number("shared", tied, "least risk of shared layers as D grows")
        m.number("gain", 1 - 1 / (series * tied), "share of the shared layers' risk that separate ones save")
        if alpha == 1:
            m.zero("shared_form", tied - fmpq(comb(2 * L, L), 4**L), "shared risk less binom(2L, L) / 4^L")
