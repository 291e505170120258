"""looped: the second derivative of the risk at the best multiple of Sigma^-1, exact in any dimension."""

from dataclasses import dataclass

from icl.checks.looped.settings import SADDLE_FROM, Looped, measure_fall
from icl.checks.statement import OPEN, Measured, setting
from icl.theory.looped.equal_steps import EqualSteps


@dataclass
class ScalarIsSaddle(Looped):
    dim: int = setting(2, 2, 6, most=20, beyond="the recursion takes minutes")
    context: int = setting(20, 1, 100)
    layers: int = setting(2, 1, 6, most=8, beyond="products of two traces of degree 16 take minutes")
    most: int = setting(60, 1, 1, most=1000, beyond="the search takes minutes")  # context searched up to

    where, title = "statement 2", "The best scalar is a saddle"
    claim = (
        "The best multiple of Sigma^-1 is a saddle: an antisymmetric part lowers the risk to second order."
    )
    formula = r"\frac{d^2}{db^2} f(a I + b K)\Big|_{b = 0} < 0,\quad K^\top = -K,\quad a = \arg\min f(a I)"

    def expected(self) -> str:
        if self.layers == 1:
            return "fails"
        first = SADDLE_FROM.get((self.dim, self.layers))
        return OPEN if first is None else "holds" if self.context >= first else "fails"

    def measure(self, m: Measured) -> None:
        measure_fall(m, self.steps)
        lengths = range(1, self.most + 1)
        signs = (EqualSteps(self.dim, n, self.layers).curvature_sign() for n in lengths)
        if first := next((n for n, sign in zip(lengths, signs, strict=False) if sign < 0), None):
            m.number("first_context", first, f"least context length up to {self.most} with a saddle")
