"""depth, section 5.1: equal separate layers stay equal."""

from dataclasses import dataclass

from flint import fmpq

from icl.checks.depth.settings import Separate
from icl.checks.statement import Measured
from icl.theory.calculus import gradient
from icl.theory.depth.steps import risk, shared, wishart


@dataclass
class Untied(Separate):
    where, title = "Section 5.1, Appendix G.1", "Separate layers that start equal"
    claim = (
        "From equal layers the flow keeps separate layers equal, and L times as fast is that of a shared one."
    )
    quote = '"the loss dynamics will be identical to the recurrent model that we analyzed" (section 5.1)'
    formula = r"\partial_\ell f(g, .., g) = \frac{1}{L} \frac{d}{dg} f(g, .., g)"

    def measure(self, m: Measured) -> None:
        L, g = self.layers, fmpq(2, 3)
        moments = wishart(self.dim, self.context, 2 * L + 1)
        tied = shared(moments, L).derivative()(g)
        slopes, other = (
            gradient(lambda *steps: risk(moments, steps), [*[g] * (L - 1), last]) for last in (g, g / 2)
        )
        off = [L * slope - tied for slope in slopes]
        m.zero("difference", off, "L times the slope in one layer less that of the shared layer, each layer")
        m.control("the same where one layer has half the step", L * other[0] - tied, of="difference")
        m.note("True from exactly equal layers: depth/balance_is_saddle says how long that lasts.")
