"""Ahn et al. 2023, Theorem 2: two layers of eq. (8) have diagonal optima among symmetric matrices."""

from dataclasses import dataclass
from random import Random

from icl.checks.statement import Measured, Statement, setting
from icl.theory.ahn.critical_set import query_polynomial
from icl.theory.ahn.forward import positive
from icl.theory.rationals import diagonal, reflection
from icl.theory.wishart import best_polynomial, covariance_moments, mean_trace
from icl.theory.words import stack_risk, stack_slope


@dataclass
class Theorem2(Statement):
    dim: int = setting(5, 2, 8, most=32, beyond="d^3 operations on long rationals take minutes")
    context: int = setting(20, 1, 10**12)
    seed: int = setting(0, 0)

    paper, where = "ahn", "Theorem 2"
    title = "Theorem 2: diagonal optima of two layers"
    law = "x ~ N(0, I), w ~ N(0, I), n examples, y = w.x"
    claim = (
        "For two layers of eq. (8) and isotropic x and w, the least population risk over symmetric A_0 "
        "and A_1 is attained by diagonal matrices."
    )
    quote = (
        '"then, there are diagonal matrices $A_1$ and $A_2$ that are a global minimizer of $f$" (Theorem 2)'
    )
    formula = (
        r"L = 2,\ \Sigma = I:\quad \min_{A_0, A_1 \text{ diagonal}} f = "
        r"\min_{A_0, A_1 \text{ symmetric}} f"
    )

    def measure(self, m: Measured) -> None:
        rng, d, n = Random(self.seed), self.dim, self.context
        A, B = (x + x.transpose() for x in (positive(rng, d, d) for _ in range(2)))
        R = reflection(positive(rng, d, 1))
        risk = stack_risk([A, B], n)
        turned = stack_risk([R * A * R, R * B * R], n) - risk
        m.zero("turned", turned, "risk of a symmetric pair, both reflected, minus its risk")
        m.control("A_0 reflected alone", stack_risk([R * A * R, B], n) - risk, of="turned")
        A_diagonal, B_diagonal = (diagonal([x[i, i] for i in range(d)]) for x in (A, B))
        rest = B - B_diagonal
        about = "derivative of the risk along the part of A_1 off the diagonal, at a diagonal pair"
        m.zero("slope", stack_slope([A_diagonal, B_diagonal], n, 1, rest), about)
        m.control("at an A_0 off the diagonal", stack_slope([A, B_diagonal], n, 1, rest), of="slope")
        there, *beside = (stack_risk([A_diagonal, B_diagonal + s * rest], n) for s in (0, 1, -1))
        m.positive("curvature", (beside[0] + beside[1]) / 2 - there, "second difference along that part")
        moments = covariance_moments(d, n, 5)
        q, least = best_polynomial(moments, 2)
        halfway = mean_trace(moments, query_polynomial([-q[1] / 2] * 2) ** 2)
        m.control("that along A_0 and A_1 between the orders of the best", least - halfway, of="curvature")
        m.number("best_scalar", least, "least risk over multiples of I")
        m.note(
            "From any symmetric pair a rotation leads to one with a diagonal A_0 and the same risk, where "
            "the part of A_1 off the diagonal can only raise it. That multiples of I are no worse is "
            "ahn/global_optimum's"
        )
