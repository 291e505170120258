"""The best step of gradient descent from 0, and how much it leaves of the risk."""

from dataclasses import dataclass

from icl.checks import Measured, Statement, setting
from icl.theory import Law, least_risk, rational, risk


@dataclass
class BestStep(Statement):
    d: int = setting(3, 1, 8)  # its default, and from where to where random ones are drawn
    n: int = setting(10, 1, 1000)

    title = "The best step of gradient descent from 0"
    claim = "At Sigma = I the step n / (n + d + 1) has risk d (d + 1) / (n + d + 1), the least of any layer."

    def measure(self, m: Measured) -> None:
        law = Law(self.d, self.n)
        found = risk([rational(self.n) / (self.n + self.d + 1)], law)
        m.equal("risk", found, "d*(d + 1)/(n + d + 1)")  # changed by one, it must be seen to be wrong
        m.equal("above_least", found, least_risk(law), "the risk less the least of any P and Q")
