"""Ahn et al. 2023, section 4.2: whether there is shrinkage where w ~ N(0, Sigma^-1)."""

from __future__ import annotations

from dataclasses import dataclass

from icl.checks.prompts import Prompts
from icl.checks.statement import Measured
from icl.theory.one_layer import OneLayer
from icl.theory.rationals import identity, largest, rational


@dataclass
class Shrinkage(Prompts):
    paper, where = "ahn", "Section 4.2, after Theorem 3"
    title = "Section 4.2: no trade-off with robustness"
    law = "x ~ N(0, Sigma), w ~ N(0, Sigma^-1), n examples, y = w.x"
    claim = (
        "Where w ~ N(0, Sigma^-1) there is no trade-off with statistical robustness: the best layer of the "
        "set S is Sigma^-1, without shrinkage."
    )
    quote = (
        r'"in contrast to Theorem 1, there is no trade-off with statistical robustness" (after '
        r"Theorem 3, Section 4.2)"
    )
    formula = r"L = 1:\quad \arg\min_a f(a \Sigma^{-1}) = 1,\quad w \sim \mathcal{N}(0, \Sigma^{-1})"
    task_covariance = "inverse"

    def expected(self) -> str:
        return "fails"

    def measure(self, m: Measured) -> None:
        sigma, d, n = self.sigma, self.dim, rational(self.context)
        inverse = sigma.inv()
        layer = OneLayer(sigma, n, inverse)
        none, ahead, back = (layer.risk_at(a * inverse) for a in (0, 1, -1))
        best = (back - ahead) / (2 * (ahead + back - 2 * none))  # the risk is quadratic in a
        m.zero("shrinkage", 1 - best, "difference of the best scalar a of A = a Sigma^-1 from 1")
        m.control("a shrinkage that does not depend on d, n / (n + 1)", best - n / (n + 1), of="shrinkage")
        m.number("best", best, "best scalar a of A = a Sigma^-1 at one layer")
        m.number("best_error", best - n / (n + d + 1), "difference of the best scalar from n / (n + d + 1)")
        overall = layer.label_form.solve(sigma * inverse)
        off = largest(overall * sigma - best * identity(d))
        m.number("anisotropy", off, "largest entry of A Sigma - a I at the best matrix over all A")
        m.note("what is absent is a difference between directions: the best matrix is a multiple of Sigma^-1")
