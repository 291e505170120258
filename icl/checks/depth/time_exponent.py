"""depth, Result 8: the exponent in pretraining time."""

from dataclasses import dataclass

from flint import arb

from icl.checks.depth.settings import Exponent
from icl.checks.statement import Measured
from icl.theory.depth.power_law import EARLY


@dataclass
class TimeExponent(Exponent):
    where, title = "Section 4, Result 8", "The exponent in time"
    claim = "Under rotations, N = L = P = infinity, the loss falls like t^(-beta / (2 + beta))."
    quote = r'"$\lim_{N,L,P\to\infty} \mathcal L(t,N,L,P) = \Theta(t^{-\frac{\beta}{2+\beta}})$" (Result 8)'
    formula = r"\lim_{N, L, P \to \infty} \mathcal L = \Theta\left(t^{-\beta / (2 + \beta)}\right)"

    def measure(self, m: Measured) -> None:
        slope, (nu, beta) = self.power.time_slope(arb(EARLY)), self.exponents
        m.zero("difference", slope + beta / (2 + beta), "slope at gamma = 1e400, less the exponent")
        wrong = nu * beta / (nu * beta + 2 * nu + 1)
        m.control("the same of the exponent of fixed covariances", slope + wrong, of="difference")
