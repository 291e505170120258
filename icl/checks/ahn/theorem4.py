"""Ahn et al. 2023, Theorem 4: critical points on S, for layers of eq. (11)."""

from dataclasses import dataclass
from functools import cached_property

from flint import arb, ctx, fmpq

from icl.checks.ahn.critical_set import CriticalSet, minima_on_s, whitened
from icl.checks.given import Comparison, Given
from icl.checks.statement import Measured, setting
from icl.theory.ahn.critical_set import distance_from_s, on_s, query_polynomial
from icl.theory.ahn.invariant_risk import InvariantRisk, PolynomialMinimum
from icl.theory.ahn.minima import Minimum, derivatives, enclosed, minimum
from icl.theory.wishart import covariance_moments, mean_trace

BITS_OF_WEIGHTS = 512


@dataclass
class Theorem4(CriticalSet):
    context: int = setting(10, 1, 1000, most=10**4, beyond="the search loses its digits")
    layers: int = setting(3, 1, 3, most=4, beyond="q has degree (3^L - 1)/2")
    starts: int = setting(64, 1, most=10_000, beyond="the search takes hours", draw=lambda *_: 8)

    paper, where = "ahn", "Theorem 4"
    title = "Theorem 4: critical points on S, layers that move the covariates"
    law = "x ~ N(0, Sigma), w ~ N(0, Sigma^-1), n examples, y = w.x"
    claim = (
        "Let x ~ N(0, Sigma) and w ~ N(0, Sigma^-1). The population risk of L layers of eq. (11) has a "
        "critical point at which every A_l is a multiple of Sigma^-1 and every B_l a multiple of I."
    )
    quote = (
        r'"there exists scalars $a_i, b_i \in \mathbb{R}$ such that $A_i = a_i \Sigma^{-1}$ and $B_i = b_i I$'
        r". Then $\inf_{(A, B) \in \mathcal{S}} \sum_{i=0}^{L-1} \|\nabla_{A_i} f(A, B)\|_F^2 + "
        r'\|\nabla_{B_i} f(A, B)\|_F^2 = 0$" (Theorem 4, Section 5)'
    )
    formula = (
        r"\exists\, a, b \in \mathbb{R}^L:\quad \nabla f(A, B) = 0 \text{ at } A_\ell = a_\ell \Sigma^{-1},\ "
        r"B_\ell = b_\ell I"
    )
    claim_of_weights = (
        "These weights are at a critical point of Theorem 4: every A_l is a multiple of Sigma^-1, every "
        "B_l a multiple of I, and the risk has a local minimum among such weights."
    )
    compared = "the nearest point of S"  # for weights off S the risk is not known
    tries, most_bits = 5, 1024

    @cached_property
    def found(self) -> list[PolynomialMinimum]:
        return minima_on_s(self.dim, self.context, self.layers, self.starts, self.seed)

    @cached_property
    def moments(self) -> list[fmpq]:
        return covariance_moments(self.dim, self.context, 3**self.layers)

    def measure(self, m: Measured) -> None:
        best = minimum(self.moments, self.found[0])
        about = "derivative of the risk along each a_l and a_l b_l, on balls that hold one zero of it"
        m.zero("gradient", self.slopes(best), about)
        larger = Minimum([fmpq(11, 10) * x for x in best.a], best.beta, best.risk)
        m.control("along a_0 at a_l a tenth larger", self.slopes(larger)[0], of="gradient")
        L = self.layers
        b = [fmpq((-1) ** k * 3, k + 5) for k in range(L - 1)]
        self.measure_gradients(m, [fmpq(k + 2, 7) for k in range(L)], b)
        m.number("a", best.a, "scalars a_l of the lowest minimum found on S", searched=True)
        m.number("b", best.b, "scalars b_l of that minimum", searched=True)
        m.number("risk", best.risk, "risk at the lowest minimum found on S", searched=True)
        m.note(
            "An interval Newton step proves the minimum: the infimum in (12) is attained here (footnote 3). "
            "The proof prints -s_i Sigma^-1 for -s_i I, r_i I for r_i Sigma^-1 and s_j Sigma^-1 for s_j I"
        )

    def slopes(self, at: Minimum) -> list[arb]:
        return list(derivatives(self.moments, [*at.a, *at.beta])[1].entries())

    def compare(self, given: Given) -> Comparison:
        """Compare with the local minimum below the nearest point of S; which of them is left open."""
        matrices = whitened(given, "Theorem 4", "sparse_ab")
        A, B = matrices["A"], matrices.get("B", [])
        d, L = A[0].nrows(), len(A)
        a = [-on_s(x) for x in A]
        beta = [s * on_s(y) for s, y in zip(a, B, strict=False)]
        moments = covariance_moments(d, given.context, 3**L)
        risk = mean_trace(moments, query_polynomial(a, beta) ** 2)
        start = InvariantRisk(d, given.context, L, with_b=True).descend([*map(float, a), *map(float, beta)])
        with ctx.workprec(BITS_OF_WEIGHTS):
            least = enclosed(moments, start)
            return Comparison(risk, least.risk if least else arb("nan"), distance_from_s([*A, *B]))
