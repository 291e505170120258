"""depth, Result 4: the exponent in time on fixed covariances, as printed."""

from dataclasses import dataclass

from flint import arb

from icl.checks.depth.settings import LATE, LATER, Exponent
from icl.checks.statement import OPEN, Measured
from icl.theory.depth.power_law import exponent


@dataclass
class FsExponent(Exponent):
    where, title = "Section 3.2, Result 4", "The exponent on fixed covariances, as printed"
    claim = (
        "The loss sum_k omega_k lambda_k / (1 + 4 omega_k lambda_k^3 t) is ~ t^(-beta / (nu + nu beta + 1))."
    )
    quote = (
        '"the ICL loss scales as a powerlaw in pretraining time" t^(-beta / (nu + nu beta + 1)) (Result 4)'
    )
    formula = r"\mathcal L(t) \sim t^{-\frac{\beta}{\nu + \nu\beta + 1}}"

    def expected(self) -> str:
        """At nu (nu - 1) (1 + beta) = 1 the printed exponent is the right one."""
        return "fails" if abs(self.nu * (self.nu - 1) * (1 + self.beta) - 1) > 1e-6 else OPEN

    def claimed(self, nu: arb, beta: arb) -> arb:
        return -beta / (nu + nu * beta + 1)

    def measure(self, m: Measured) -> None:
        early, later = (self.power.fixed(4 * arb(t)) for t in (LATE, LATE * LATER))
        slope, beta = exponent(early, later, arb(LATER)), self.exponents[1]
        about = "slope of log loss over log t between 1e40 and 1e60 less the exponent claimed"
        m.zero("difference", slope - self.claimed(*self.exponents), about)
        m.control("the same of Result 8's exponent, -beta / (2 + beta)", slope + beta / (2 + beta))
        m.number("slope", slope, "slope of log loss over log t")
