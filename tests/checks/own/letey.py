"""After Letey et al., arXiv 2509.26551: w ~ N(0, diag(a, b)) in training; and two of our own."""

from dataclasses import dataclass

from icl.checks import Measured, Statement, setting
from icl.theory import Law, least_risk, optimum, risk


@dataclass
class Pretrained(Statement):
    a: int = setting(3, 1, 9)
    b: int = setting(1, 1, 9)
    s: int = setting(1, 1, 9)
    n: int = setting(5, 1, 50)
    claim = "Pretraining shrinks a task direction of variance a by a/((1 + 1/n) a + (a + b + s)/n)."
    formula = "a/((1 + 1/n)*a + (a + b + s)/n)"

    def measure(self, m: Measured) -> None:
        m.equal("entry", optimum(Law(2, self.n, [self.a, self.b], self.s))[0, 0], self.formula)


@dataclass
class PretrainedWithoutNoise(Pretrained):
    claim = "The noise does not enter."
    formula = "a/((1 + 1/n)*a + (a + b)/n)"


@dataclass
class TestTasks(Pretrained):
    noise = 0
    claim = "Without noise the risk on test tasks is linear in their covariance."

    def measure(self, m: Measured) -> None:
        A = optimum(Law(2, self.n, [self.a, self.b], self.s))
        one, two, both = (
            risk([A], Law(2, self.n, t, self.noise)) for t in ([1, 0], [0, 1], [self.a, self.b])
        )
        m.equal("risk", both, "a*one + b*two", one=one, two=two)


@dataclass
class TestTasksWithNoise(TestTasks):
    noise = 1
    claim = "It is so with noise, too."


@dataclass
class RateOfOneLayer(Statement):
    d: int = setting(3, 1, 5)
    claim = "The least risk of one layer falls like 1/n."

    def measure(self, m: Measured) -> None:
        m.rate("risk", lambda n: least_risk(Law(self.d, n)), -1)


@dataclass
class RateOfTwoLayers(RateOfOneLayer):
    claim = "Two layers of step 1 fall like 1/n, too."

    def measure(self, m: Measured) -> None:
        m.rate("risk", lambda n: risk([1, 1], Law(self.d, n)), -1)
