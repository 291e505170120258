"""Own: separate layers have another exponent in depth."""

from dataclasses import dataclass

from flint import arb

from icl.checks.depth.settings import OWN, Exponent
from icl.checks.statement import Measured, setting


@dataclass
class DepthExponentSeparate(Exponent):
    layers: int = setting(32, 8, 32, most=200, beyond="products take minutes")
    dim: int = setting(4000, 4000, 4000, most=10**6, beyond="the sum takes minutes")

    where, title, origin = OWN, "The exponent in depth, of separate layers", "icl"
    claim = (
        "The least risk of L separate layers is at most C L^(-beta (2 + nu)), where shared ones have L^-beta."
    )
    formula = r"\min_g \sum_k \lambda_k \omega_k \prod_l (1 - g_l \lambda_k)^2 \le C L^{-\beta (2 + \nu)}"
    tries = 0

    def measure(self, m: Measured) -> None:
        power, L, (nu, beta) = self.power, self.layers, self.exponents
        bound = power.separate_bound(L)
        found = power.summed(power.steps(L), self.dim, power.deflated(L)[0])
        tied = power.summed([arb(1)] * L, self.dim)
        m.positive("room", bound - found, "bound less the risk of the steps of its proof")
        m.control("the bound less the risk of L equal steps of 1 / lambda_1", bound - tied, of="room")
        form = power.separate_constant * arb(L) ** -(beta * (2 + nu))
        m.positive("form", form - bound, "C L^(-beta (2 + nu)) less the bound")
        m.control("the same of a quarter of the layers", form - power.separate_bound(L // 4), of="form")
        m.note("An upper bound is proved. That the risk falls no faster is measured by depth/fig4.")
