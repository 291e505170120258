"""Ahn et al. 2023, section 6: the risk has several critical points."""

from dataclasses import dataclass
from functools import cached_property
from math import factorial

from icl.checks.ahn.critical_set import minima_on_s
from icl.checks.statement import Measured, Statement, setting
from icl.theory.ahn.critical_set import S, query_polynomial
from icl.theory.ahn.invariant_risk import PolynomialMinimum
from icl.theory.ahn.minima import Minimum, minimum
from icl.theory.roots import real_roots
from icl.theory.wishart import best_polynomial, covariance_moments, mean_trace


@dataclass
class CriticalPoints(Statement):
    dim: int = setting(5, 1, 8, most=32, beyond="the search takes minutes")
    context: int = setting(10, 1, 1000, most=10**4, beyond="the search loses its digits")
    layers: int = setting(3, 2, 3, most=4, beyond="q has degree (3^L - 1)/2")
    starts: int = setting(64, 1, most=10_000, beyond="the search takes hours", draw=lambda *_: 4)
    seed: int = setting(0, 0)

    paper, where = "ahn", "Section 6, after Theorem 5; Lemma 4"
    title = "Section 6: several critical points"
    law = "x ~ N(0, Sigma), w ~ N(0, Sigma^-1), n examples, y = w.x; whitened, so for every Sigma"
    claim = "The population risk of several layers has more than one critical point."
    quote = '"we prove that the in-context loss can have multiple critical points" (Section 6)'
    formula = r"\#\{(P_\ell, Q_\ell)_{\ell<L} : \nabla f = 0\} > 1"
    tries, most_bits = 5, 1024

    @cached_property
    def found(self) -> list[PolynomialMinimum]:
        return minima_on_s(self.dim, self.context, self.layers, self.starts, self.seed)

    def measure(self, m: Measured) -> None:
        L = self.layers
        moments = covariance_moments(self.dim, self.context, 3**L)
        q, _ = best_polynomial(moments, L)
        gradient = [mean_trace(moments, q * S**j) for j in range(1, L + 1)]
        m.zero("gradient", gradient, "E tr S_n^j q(S_n), j = 1 .. L, at the optimum on S of eq. (8)")
        equal = query_polynomial([-q[1] / L] * L)
        m.control("equal scalars of the same sum", mean_trace(moments, equal * S), of="gradient")
        different = len(real_roots(q))
        m.zero("equal_scalars", L - different, "layers minus different scalars a_l there, 1 over roots of q")
        m.control("the same of equal scalars", L - len(real_roots(equal)), of="equal_scalars")
        about = "orders of the layers there: as many critical points of eq. (8)"
        m.number("of_eq_8", factorial(different), about)
        minima = list[Minimum]()
        for start in self.found:
            one = minimum(moments, start)
            minima += [one] if all(one.is_apart(other) for other in minima) else []
        about = "number of local minima found on S for eq. (11), in balls that do not meet"
        m.number("of_eq_11", len(minima), about, searched=True)
        groups = [x for k, x in enumerate(minima) if not any(x.risk.overlaps(y.risk) for y in minima[:k])]
        m.number("different_risks_of_eq_11", len(groups), "number of their different risks", searched=True)
        m.note(
            "By Theorems 3 and 4 critical points on S are ones of all weights, by Lemma 4 in every order of "
            "the layers of eq. (8). Saddle points and points off S are not searched for"
        )
