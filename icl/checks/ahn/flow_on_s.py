"""Ahn et al. 2023, appendix B.2: the step on which the proof of Theorem 3 rests."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from flint import fmpq, fmpq_mat

from icl.checks.statement import Measured, Statement, setting
from icl.theory.ahn.forward import positive
from icl.theory.rationals import dot, identity, matrix, trace, unit
from icl.theory.words import stack_slope


@dataclass
class FlowOnS(Statement):
    dim: int = setting(5, 2, 5, most=10, beyond="the words of matrices off S take minutes")
    context: int = setting(20, 1, 10**6)
    layers: int = setting(2, 1, 3, most=3, beyond="the words have 2 L letters")
    seed: int = setting(0, 0)

    paper, where = "ahn", "Appendix B.2, eqs. (28) and (29)"
    title = "Appendix B.2: the flow inside S"
    law = (
        "x ~ N(0, Sigma), w ~ N(0, Sigma^-1), n examples, y = w.x; whitened, A_l for "
        "Sigma^1/2 A_l Sigma^1/2, so for every Sigma"
    )
    claim = (
        "At every point of S and for all directions R_i, the risk changes along r_i Sigma^-1, r_i = "
        "tr(Sigma^1/2 R_i Sigma^1/2) / d, no more than along R_i; the flow inside S decreases it at least as "
        "fast as gradient flow."
    )
    quote = (
        r'"we construct a flow, contained entirely in $\mathcal{S}$, whose objective value decreases as fast '
        'as gradient flow" (Section 4.2)'
    )
    formula = (
        r"\tfrac{d}{dt} f(A + t \tilde R) = \tfrac{d}{dt} f(A + t R)\quad\text{at } A_i = a_i \Sigma^{-1},"
        r"\enspace \tilde R_i = \tfrac1d \operatorname{tr}(\Sigma R_i) \Sigma^{-1}"
    )
    tries = 5

    def measure(self, m: Measured) -> None:
        rng, d, L, n = Random(self.seed), self.dim, self.layers, self.context
        on_s = [fmpq(rng.randint(20, 120), 100) * identity(d) for _ in range(L)]
        R = [positive(rng, d, d) for _ in range(L)]
        r = [trace(x) / d * identity(d) for x in R]
        errors = [stack_slope(on_s, n, i, R[i]) - stack_slope(on_s, n, i, r[i]) for i in range(L)]
        m.zero("derivative_error", errors, "derivative along R_i minus that along r_i Sigma^-1, by layer")
        tilted = [on_s[0] + unit(0, 0, d) / 2, *on_s[1:]]
        off = stack_slope(tilted, n, 0, R[0]) - stack_slope(tilted, n, 0, r[0])
        m.control("a point off S", off, of="derivative_error")
        gradient = [gradient_of(on_s, n, i) for i in range(L)]
        rates = [trace(g) ** 2 - d * dot(g, g) for g in gradient]
        m.zero("rate_error", rates, "decrease by the flow in S minus d times that of gradient flow, by layer")
        g = gradient_of(tilted, n, 0)
        m.control("a point off S", trace(g) ** 2 - d * dot(g, g), of="rate_error")
        m.note("the text prints r_i I for r_i Sigma^-1; (28) and (29) hold as equalities, (29) with factor d")


def gradient_of(A: list[fmpq_mat], n: int, layer: int) -> fmpq_mat:
    d = A[0].nrows()
    return matrix([[stack_slope(A, n, layer, unit(i, j, d)) for j in range(d)] for i in range(d)])
