"""depth, Result 8: the exponent in depth, of shared layers."""

from dataclasses import dataclass

from icl.checks.depth.settings import Exponent
from icl.checks.statement import Measured
from icl.theory.depth.power_law import slope


@dataclass
class DepthExponent(Exponent):
    where, title = "Section 4, Result 8", "The exponent in depth, of shared layers"
    claim = "The least loss of L shared layers falls like L^-beta: L ~ N^nu balances it with N^(-nu beta)."
    quote = r'"the optimal width and depth scale as $L \propto N^{\nu}$" (Result 8)'
    formula = r"\min_\gamma \sum_k \lambda_k \omega_k (1 - \gamma \lambda_k / L)^{2L} \sim L^{-\beta}"

    def measure(self, m: Measured) -> None:
        found, (nu, beta) = slope(self.power.shared), self.exponents
        m.zero("difference", found + beta, "slope of log loss between L = 1e400 and 1e600, plus beta")
        m.control("the same of beta (2 + nu), of separate layers", found + beta * (2 + nu), of="difference")
        m.note("The best gamma tends to 2 L / lambda_1, not L / lambda_1; this changes the constant alone.")
