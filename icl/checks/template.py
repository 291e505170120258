"""The best step of gradient descent from 0, and how much it leaves of the risk."""

from dataclasses import dataclass

from icl.checks import Measured, Statement, setting
from icl.theory.one_layer import OneLayer
from icl.theory.rationals import identity, rational


@dataclass
class BestStep(Statement):
    dim: int = setting(3, 1, 8)  # its default, and from where to where random ones are drawn
    context: int = setting(10, 1, 1000)

    title = "The best step of gradient descent from 0"
    claim = "At Sigma = I the step n / (n + d + 1) has risk d (d + 1) / (n + d + 1), the least of any layer."

    def measure(self, m: Measured) -> None:
        d, n = self.dim, rational(self.context)
        layer = OneLayer(identity(d), n)
        risk = layer.risk_at(n / (n + d + 1) * identity(d))
        m.zero("difference", risk - d * (d + 1) / (n + d + 1), "the risk less the formula")
        m.zero("above_least", risk - layer.least(), "the risk less the least of any P and Q")
        m.control("the step 1", layer.risk_at(identity(d)) - layer.least())  # must be seen to be worse
        m.number("risk", risk, "the risk")
