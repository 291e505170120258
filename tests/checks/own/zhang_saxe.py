"""After Zhang, Singh, Latham, Saxe, arXiv 2501.16265: x ~ N(0, diag(a, b)), w ~ N(0, I)."""

from dataclasses import dataclass

from icl.checks import Measured, Statement, setting
from icl.theory import Law, diagonal, flow, gradient, hessian, matrix, optimum, risk


@dataclass
class Plateau(Statement):
    a: int = setting(3, 2, 9)
    b: int = setting(1, 1, 1)
    n: int = setting(5, 1, 50)
    claim = "With one eigenvector learned the risk is tr - a / (1 + (1 + tr/a)/n)."
    formula = "a + b - a/(1 + (1 + (a + b)/a)/n)"

    @property
    def law(self) -> Law:
        return Law([self.a, self.b], self.n)

    def measure(self, m: Measured) -> None:
        m.equal("risk", risk([diagonal([optimum(self.law)[0, 0], 0])], self.law), self.formula)


@dataclass
class PlateauOfLongPrompts(Plateau):
    claim = "With one eigenvector learned the risk is that of the other eigenvalue alone."
    formula = "b"


@dataclass
class SaddleOfHeads(Plateau):
    claim = "There the risk of two heads k q^T of rank one has gradient 0 if the second is 0."

    def of_heads(self, *x):
        return risk(
            [matrix([[x[i] * x[2 + j] + x[4 + i] * x[6 + j] for j in (0, 1)] for i in (0, 1)])], self.law
        )

    def measure(self, m: Measured) -> None:
        at = [1, 0, optimum(self.law)[0, 0], 0, 0, 0, 0, 0]
        m.zero("gradient", gradient(self.of_heads, at), "gradient in both heads")
        m.control(
            "half the first head", gradient(self.of_heads, [*at[:2], at[2] / 2, *at[3:]])[0], of="gradient"
        )


@dataclass
class MinimumOfHeads(SaddleOfHeads):
    claim = "There the risk grows as the second head turns to the second eigenvector."

    def measure(self, m: Measured) -> None:
        H = hessian(self.of_heads, [1, 0, optimum(self.law)[0, 0], 0, 0, 0, 0, 0])
        m.positive("curvature", H[5, 7], "curvature as k and q of the second head grow along e_2")
        m.control("along e_1, which is learned, it is flat", H[4, 6], of="curvature")


@dataclass
class Flow(Statement):
    d: int = setting(3, 1, 6)
    n: int = setting(5, 1, 50)
    claim = "From 0 the flow of a multiple of I is 2 d t - 2 d^2 (1 + (d + 1)/n) t^2 + .."
    formula = "-2*d**2*(1 + (d + 1)/n)"

    def measure(self, m: Measured) -> None:
        m.equal("second", flow(lambda a: risk([a], Law(self.d, self.n)), [0], order=2)[0][2], self.formula)


@dataclass
class FlowOfLongPrompts(Flow):
    claim = "The second term is -2 d^2 (1 + d/n) t^2."
    formula = "-2*d**2*(1 + d/n)"
