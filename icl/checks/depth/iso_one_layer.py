"""depth, after Result 1: the loss of one layer, as printed."""

from dataclasses import dataclass

from flint import fmpq

from icl.checks.depth.settings import Isotropic
from icl.checks.statement import Measured, setting
from icl.theory.depth.steps import marchenko_pastur, shared
from icl.theory.roots import least
from icl.theory.wishart import best_polynomial


@dataclass
class IsoOneLayer(Isotropic):
    layers: int = setting(1, 1, 1, most=1, beyond="see depth/iso_closed_form")

    where, title = "Section 3.1, after Result 1", "The loss of one layer"
    claim = "For L = 1 the least loss is (1 + alpha)^-2 as D grows, P = alpha D."
    quote = r'"For $L=1$, the loss saturates to $\mathcal L_\star = (1 + \alpha)^{-2}$" (after Result 1)'
    formula = r"\min_\gamma \int d\rho(\lambda) (1 - \gamma \lambda)^2 = (1 + \alpha)^{-2}"

    def expected(self) -> str:
        return "fails"

    def measure(self, m: Measured) -> None:
        moments, printed = marchenko_pastur(self.alpha, 5), 1 / (1 + self.alpha) ** 2
        q, found = best_polynomial(moments, 1)
        m.zero("difference", found - printed, "least loss of one layer, D to infinity, less (1 + alpha)^-2")
        m.control("the same of the loss without a layer, 1", 1 - printed, of="difference")
        m.number("least", found, "least loss of one layer, 1 / (1 + alpha)")
        m.number("distance", (1 + q[1]) ** 2, "(1 - gamma)^2 at the best gamma, which is printed")
        two = least(shared(moments, 2))[1]
        m.number("two_layers", two, "least loss of two shared layers in the limit; at alpha = 1 above .25")
        deep = shared(marchenko_pastur(self.alpha, 33), 16)(self.alpha / (1 + self.alpha))
        about = "loss of 16 layers at g = alpha / (1 + alpha) less max(1 - alpha, 0)"
        m.number("excess_of_many", deep - max(1 - self.alpha, fmpq(0)), about)
