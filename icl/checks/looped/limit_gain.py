"""looped: what the best a I + b J gains at d = 2 as the prompts grow, exactly."""

from dataclasses import dataclass

from flint import arb

from icl.checks.looped.settings import Plane
from icl.checks.statement import Measured, setting
from icl.theory.looped.limit import best_turn, in_alpha, is_centred
from icl.theory.looped.long_prompts import limit_curvature
from icl.theory.looped.plane import risk
from icl.theory.roots import near


@dataclass
class LimitGain(Plane):
    context: int = setting(1000, 1, 10**6)
    layers: int = setting(4, 2, 8, most=8, beyond="the limit of the curvature takes minutes")

    where, title = "statement 11", "The gain has a limit"
    claim = "As n grows, what the best a I + b J gains on the best scalar tends to a positive number."
    formula = (
        r"\lim_{n \to \infty} \frac{\min_{a, b} f(a I + b J)}{\min_a f(a I)}"
        r" = \min_\beta \frac{\mathbb{E} \|(X + \beta J)^L\|_F^2}{\mathbb{E} \|X^L\|_F^2} < 1"
    )

    def measure(self, m: Measured) -> None:
        (turn, share), poly = best_turn(self.layers), in_alpha(self.layers)
        m.positive("gain", 1 - share, "limit of the share of the best scalar's risk that is saved")
        scalar = sum((arb(c(0)) * turn**i for i, c in enumerate(poly)), arb(0)) / poly[0](0)
        about = "the same of a multiple of I as far from the best one, alpha in the place of beta"
        m.control(about, 1 - scalar, of="gain", wants="negative")
        m.true("centred", is_centred(self.layers) or None, "no multiple of I added to beta J lowers the risk")
        about = "half the slope of the limit in beta^2 at 0, less the limit of the curvature"
        m.zero("slope", poly[0].derivative()(0) / 2 - limit_curvature(self.layers)(2), about)
        m.number("turn", turn, "n b^2 of the best turn in the limit")
        a, b = near(self.steps.optimum[0], 15), near((turn / self.context).sqrt(), 15)
        found = risk(self.layers, self.context, a, b) / self.steps.polynomial(a)
        m.number("gain_at_context", 1 - found, "gain of the limit's turn at this context length")
