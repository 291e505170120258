"""depth, Result 8: the exponent in depth, of shared layers."""

from dataclasses import dataclass

from flint import arb

from icl.checks.depth.settings import LATE, LATER, Exponent
from icl.checks.statement import Measured
from icl.theory.depth.power_law import exponent


@dataclass
class DepthExponent(Exponent):
    where, title = "Section 4, Result 8", "The exponent in depth, of shared layers"
    claim = "The least loss of L shared layers falls like L^-beta: L ~ N^nu balances it with N^(-nu beta)."
    quote = '"the optimal width and depth scale as L ~ N^nu" (Result 8)'
    formula = r"\min_\gamma \sum_k \lambda_k \omega_k (1 - \gamma \lambda_k / L)^{2L} \sim L^{-\beta}"

    def measure(self, m: Measured) -> None:
        shallow, deep = (self.power.shared(arb(L)) for L in (LATE, LATE * LATER))
        slope, (nu, beta) = exponent(shallow, deep, arb(LATER)), self.exponents
        m.zero("difference", slope + beta, "slope of log loss between L = 1e40 and 1e60, plus beta")
        m.control("the same of beta (2 + nu), of separate layers", slope + beta * (2 + nu), of="difference")
        about = "loss times L^beta at L = 1e40, which tends to Gamma(beta) / (4^beta nu)"
        m.number("constant", shallow * arb(LATE) ** beta, about)
        m.note("The best gamma tends to 2 L / lambda_1, not L / lambda_1; this changes the constant alone.")
