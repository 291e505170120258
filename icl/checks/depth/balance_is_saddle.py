"""Own: where two separate layers are equal, splitting them lowers the risk."""

from dataclasses import dataclass

from flint import fmpq

from icl.checks.depth.settings import OWN, Separate
from icl.checks.statement import Measured
from icl.theory.calculus import hessian
from icl.theory.depth.steps import X, error, risk, span, wishart
from icl.theory.roots import real_roots
from icl.theory.wishart import best_polynomial, mean_trace


@dataclass
class BalanceIsSaddle(Separate):
    where, title, origin = OWN, "Balance is a saddle, and there is one minimum", "icl"
    claim = (
        "Where two of L separate layers have equal steps, splitting them lowers the risk; a critical point "
        "with different steps is the global minimum."
    )
    formula = (
        r"f_{ll} - f_{lm} = -2\, \mathbb{E} \lambda^2 (1 - g\lambda)^2 \prod_{k \ne l, m} (1 - g_k \lambda)^2"
    )

    def measure(self, m: Measured) -> None:
        L, g = self.layers, fmpq(2, 3)
        moments = wishart(self.dim, self.context, 2 * L + 3)
        for name, rest in (("all", [g] * (L - 2)), ("two", [fmpq(k + 1, L + 3) for k in range(L - 2)])):
            curves = hessian(lambda *steps: risk(moments, steps), [g, g, *rest])
            split = curves[0, 0] - curves[0, 1]
            formula, longer = (
                mean_trace(moments, X**2 * error([*some, g, *rest]) ** 2) for some in ([], [g])
            )
            m.zero(name, split + 2 * formula, f"f_11 - f_12 plus twice the formula, {name} equal")
            m.control("the formula with one factor more", split + 2 * longer, of=name)
            m.positive(f"{name}_descent", -split, f"f_12 - f_11, {name} equal")
        none = hessian(lambda *steps: risk(moments, steps), [0] * L)
        along = -none[0, 0] - none[0, 1]
        m.control("minus the curvature along (1, 1) where all steps are 0", along, of="all_descent")
        steps = [fmpq(k + 1, k + 3) for k in range(L)]
        m.zero("span", span(steps) - L, "dimension of all factors but one, at different steps, less L")
        m.control("the same where two steps are equal", span([steps[0], *steps[:-1]]) - L, of="span")
        if min(self.dim, self.context) > L:
            q, _ = best_polynomial(moments, L)
            slopes = [mean_trace(moments, q * X**j) for j in range(1, L + 1)]
            m.zero("optimal", slopes, "E lambda^j q, j = 1 .. L, at the best polynomial")
            missing = L - sum(1 for root in real_roots(q) if root > 0)
            m.zero("missing", missing, "L less the different positive roots of q")
