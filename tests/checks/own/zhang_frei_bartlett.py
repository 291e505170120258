"""After Zhang, Frei, Bartlett, arXiv 2306.09927: x ~ N(0, Lambda), w ~ N(0, I), n examples."""

from dataclasses import dataclass

from icl.checks import Measured, Statement, setting
from icl.theory import Law, gradient, least_risk, limit, matrix, optimum, risk


@dataclass
class TrainedLayer(Statement):
    a: int = setting(2, 1, 9)
    b: int = setting(1, 1, 9)
    n: int = setting(5, 1, 100)
    claim = "The layer of least risk is Gamma^-1, Gamma = (1 + 1/n) Lambda + tr(Lambda) I / n."
    formula = "1/((1 + 1/n)*a + (a + b)/n)"

    def measure(self, m: Measured) -> None:
        m.equal("entry", optimum(Law([self.a, self.b], self.n))[0, 0], self.formula)


@dataclass
class TrainedLayerWithoutOneOverN(TrainedLayer):
    claim = "Gamma is Lambda + tr(Lambda) I / n."
    formula = "1/(a + (a + b)/n)"


@dataclass
class LongPrompts(Statement):
    d: int = setting(3, 1, 6)
    n: int = setting(5, 1, 50)
    claim = (
        "At Lambda = I the trained layer's risk tends to d ((d + 1)/(n + d + 1))^2 on ever longer prompts."
    )
    formula = "d*((d + 1)/(n + d + 1))**2"

    def measure(self, m: Measured) -> None:
        A = optimum(Law(self.d, self.n))
        power, constant = limit(lambda length: risk([A], Law(self.d, length)))
        m.zero("power", power, "exponent of the length")
        m.equal("limit", constant, self.formula)


@dataclass
class LongPromptsLearnAll(LongPrompts):
    claim = "The trained layer's risk tends to 0 on ever longer prompts."
    formula = "0*d"


@dataclass
class QueryShift(Statement):
    a: int = setting(2, 1, 9)
    n: int = setting(5, 1, 50)
    claim = "The trained layer is optimal for a query of any covariance."

    def slopes(self, A, law):
        def f(*x):
            return risk([matrix([x[:2], x[2:]])], law)

        return gradient(f, A.entries())

    def measure(self, m: Measured) -> None:
        law = Law([self.a, 1], self.n, test=[[2, 1], [1, self.a]])
        A = optimum(Law([self.a, 1], self.n))
        m.zero("gradient", self.slopes(A, law), "gradient of the risk of the shifted query")
        m.control("half the layer", self.slopes(A / 2, law)[0], of="gradient")


@dataclass
class CovariateShift(Statement):
    a: int = setting(3, 2, 9)
    n: int = setting(5, 1, 50)
    claim = "The layer trained at Lambda is optimal where all covariates have covariance a Lambda."

    def measure(self, m: Measured) -> None:
        law, A = Law([self.a, 2 * self.a], self.n), optimum(Law([1, 2], self.n))
        m.equal("excess", risk([A], law), least_risk(law))
        m.control("twice the layer", risk([2 * A], law) - least_risk(law), of="excess")
