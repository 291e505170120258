"""depth, Results 2 and 3: at infinitely many examples one layer is as good as any."""

from dataclasses import dataclass

from flint import fmpq

from icl.checks.depth.settings import Isotropic
from icl.checks.statement import Measured
from icl.theory.depth.steps import risk, wishart
from icl.theory.rationals import identity, largest, matrix


@dataclass
class LongContext(Isotropic):
    where, title = "Sections 3.1 and 3.2, Results 2 and 3", "Depth is unnecessary for long contexts"
    law = "x ~ N(0, Sigma), fixed; P = infinity, where Sigma^ = Sigma; L layers, no noise"
    claim = "At P = infinity Gamma = L Sigma^-1 has loss 0 at every depth, one layer included."
    quote = (
        r'"For any $L \geq 1$, zero ICL loss can be achieved [...] by setting $\Gamma = L \Sigma^{-1}$" '
        "(Result 3)"
    )
    formula = r"\Gamma = L \Sigma^{-1}:\quad (I - L^{-1} \Gamma \Sigma)^L = 0, \quad L \ge 1"

    def measure(self, m: Measured) -> None:
        d, L = self.dim, self.layers
        sigma = matrix([[min(i, j) + 1 for j in range(d)] for i in range(d)])
        found = [largest((identity(d) - sigma.inv() * sigma) ** layers) for layers in (1, L)]
        m.zero("error", found, "largest entry of (I - Gamma Sigma / L)^L, one layer and L")
        m.control("the same at half of this Gamma", largest((identity(d) - sigma.inv() * sigma / 2) ** L))
        at_P = [risk(wishart(d, self.context, 2 * k + 1), [fmpq(1)] * k) for k in (1, L)]
        m.number("at_finite_context", at_P, "losses of one layer and of L with this Gamma at P examples, ISO")
        m.note("The claim is of the limit: at P examples the loss of L layers is of the order P^-L.")
