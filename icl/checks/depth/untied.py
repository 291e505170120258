"""depth, section 5.1: equal separate layers stay equal."""

from dataclasses import dataclass

from flint import fmpq

from icl.checks.depth.settings import Separate
from icl.checks.statement import Measured
from icl.theory.depth.steps import shared, slope, wishart


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
        off = [L * slope(moments, [g] * L, k) - tied for k in range(L)]
        m.zero("difference", off, "L times the slope in one layer less that of the shared layer, each layer")
        apart = L * slope(moments, [*[g] * (L - 1), g / 2], 0) - tied
        m.control("the same where one layer has half the step", apart, of="difference")
        m.note("True from exactly equal layers: depth/balance_is_saddle says how long that lasts.")
