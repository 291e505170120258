"""depth, Result 1: gradient flow from 0 stays at multiples of the identity."""

from dataclasses import dataclass

from flint import fmpq

from icl.checks.depth.settings import Isotropic
from icl.checks.statement import Measured, setting
from icl.theory.depth.steps import shared, wishart
from icl.theory.rationals import identity, unit
from icl.theory.words import stack_slope


@dataclass
class IsoFlow(Isotropic):
    layers: int = setting(2, 1, 2, most=3, beyond="words take minutes")
    dim: int = setting(3, 2, 3, most=20, beyond="words take minutes")

    where, title = "Section 3.1, Result 1", "Gradient flow for isotropic covariates"
    claim = "From Gamma = 0 the flow stays at gamma I, with gamma' = E tr S (1 - gamma S / L)^(2L - 1) / D."
    quote = '"reduces to tracking a scaled identity matrix" (Result 1)'
    formula = (
        r"\Gamma = \gamma I, \quad \gamma' = \int d\rho(\lambda)\, \lambda (1 - \gamma \lambda / L)^{2L-1}"
    )

    def measure(self, m: Measured) -> None:
        d, L, g = self.dim, self.layers, fmpq(1, 3)
        corner, beside = unit(0, 0, d), unit(0, 1, d)
        found = [self._flow(g * identity(d), along) for along in (corner, beside)]
        rate = -shared(wishart(d, self.context, 2 * L + 2), L).derivative() / (2 * L)
        m.zero("diagonal", found[0] - rate(g), "entry (1, 1) of Gamma' at gamma I less gamma'")
        m.control("the same with twice the gamma in the printed rate", found[0] - rate(2 * g), of="diagonal")
        m.zero("beside", found[1], "entry (1, 2) of Gamma' at gamma I")
        off = self._flow(g * (identity(d) + beside), beside)
        m.control("the same at a Gamma that is no multiple of I", off, of="beside")

    def _flow(self, step, along) -> fmpq:  # type: ignore[no-untyped-def]
        L = self.layers
        return -sum((stack_slope([step] * L, self.context, k, along / L) for k in range(L)), fmpq(0)) / 2
