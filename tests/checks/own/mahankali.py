"""After Mahankali et al., arXiv 2307.03576: one layer on labels with noise of variance s."""

from dataclasses import dataclass

from icl.checks import Measured, Statement, setting
from icl.theory import Law, diagonal, least_risk, optimum


@dataclass
class OneStep(Statement):
    d: int = setting(3, 1, 6)
    n: int = setting(5, 1, 100)
    s: int = setting(1, 0, 9)
    claim = "At Sigma = I the layer of least risk is the step n/(n + d + 1 + s) of gradient descent from 0."
    formula = "n/(n + d + 1 + s)"

    def measure(self, m: Measured) -> None:
        A = optimum(Law(self.d, self.n, noise=self.s))
        m.equal("step", A[0, 0], self.formula)
        m.zero("rest", (A - A[0, 0] * diagonal([1] * self.d)).entries(), "the layer less a multiple of I")


@dataclass
class OneStepOfAnotherSize(OneStep):
    claim = "Its step is n/(n + d + s)."
    formula = "n/(n + d + s)"


@dataclass
class RiskOfOneStep(OneStep):
    claim = "Its risk is d (d + 1 + s)/(n + d + 1 + s)."
    formula = "d*(d + 1 + s)/(n + d + 1 + s)"

    def measure(self, m: Measured) -> None:
        m.equal("risk", least_risk(Law(self.d, self.n, noise=self.s)), self.formula)


@dataclass
class NoiseAddsToTheRisk(RiskOfOneStep):
    s: int = setting(1, 1, 9)
    claim = "Noise adds s d/n to the risk without it."
    formula = "d*(d + 1)/(n + d + 1) + s*d/n"


@dataclass
class Preconditioned(OneStep):
    claim = "For w ~ N(0, Sigma^-1) the layer of least risk is Sigma^-1 times the step of Sigma = I."

    def measure(self, m: Measured) -> None:
        sigma = [1 + k for k in range(self.d)]
        task = diagonal(sigma).inv() if self.whitens else self.d
        A = optimum(Law(sigma, self.n, task, self.s))
        m.equal("last", A[self.d - 1, self.d - 1] * self.d, self.formula)

    whitens = True


@dataclass
class PreconditionedForAllTasks(Preconditioned):
    d: int = setting(3, 2, 6)
    whitens = False
    claim = "It is so for w ~ N(0, I), too."
