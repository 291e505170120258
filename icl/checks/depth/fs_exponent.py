"""depth, Result 4: the exponent in time on fixed covariances, as printed."""

from dataclasses import dataclass

from icl.checks.depth.settings import Exponent
from icl.checks.statement import Measured
from icl.theory.depth.power_law import slope


@dataclass
class FsExponent(Exponent):
    where, title = "Section 3.2, Result 4", "The exponent on fixed covariances, as printed"
    claim = (
        "The loss sum_k omega_k lambda_k / (1 + 4 omega_k lambda_k^3 t) is ~ t^(-beta / (nu + nu beta + 1))."
    )
    quote = (
        r'"the ICL loss scales as a powerlaw in pretraining time '
        r'$\mathcal L(t) \sim t^{-\frac{\beta}{\nu + \nu \beta + 1}}$" (Result 4)'
    )
    formula = r"\mathcal L(t) \sim t^{-\frac{\beta}{\nu + \nu\beta + 1}}"

    def expected(self) -> str:
        """At nu (nu - 1) (1 + beta) = 1 the printed one is right: no two floats are there."""
        return "fails"

    def measure(self, m: Measured) -> None:
        found, (nu, beta) = slope(lambda t: self.power.fixed(4 * t)), self.exponents
        about = "slope of log loss over log t between 1e400 and 1e600 less the exponent claimed"
        m.zero("difference", found + beta / (nu + nu * beta + 1), about)
        m.control("the same of Result 8's exponent, -beta / (2 + beta)", found + beta / (2 + beta))
        m.number("slope", found, "slope of log loss over log t")
