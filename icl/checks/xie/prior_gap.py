"""xie, sections 5.1.2 and 5.1.3: the gap between multi-head LSA and one gradient step."""

from dataclasses import dataclass

from flint import fmpq

from icl.checks.statement import Measured
from icl.checks.xie.settings import Guessed
from icl.errors import InputError
from icl.theory.xie.heads import Heads, descent_risk


@dataclass
class PriorGap(Guessed):
    """Gaps at guesses: those at w* = 0, and at w* of the vector and the bias together."""

    where = "Sections 5.1.2 and 5.1.3; Figures 3 (b) and 4"
    title = "Section 5.1: the gap is linear in |w*|^2, |v|^2 and b^2"
    law = "x ~ N(0, I), w ~ N(w*, I), C examples, y = w.x; y_q = v.x_q + b, v and b 0 or not"
    claim = (
        "The least risk of multi-head LSA less the risk of one gradient step from w* with the best step size "
        "is proportional to |w*|^2, |v|^2 and b^2: it is 2 (|w* - v|^2 + b^2) / (d C + 2)."
    )
    quote = '"this gap increases linearly with the squared norm of the prior mean" (Section 5.1.2)'
    formula = (
        r"\min_{H, P, Q} R_{\text{LSA}} - \min_\eta R_{\text{GD}} ="
        r" \frac{2 \left(\|w^\star - v\|^2 + b^2\right)}{d C + 2}"
    )

    about_a_prior = True

    def __post_init__(self) -> None:
        super().__post_init__()
        for key, size in (("guess_vector", any(self.guess)), ("guess_bias", self.guess_bias)):
            if not size:
                raise InputError(f"check.{key}: is zero, the slope is the gap for each unit of its square")

    def measure(self, m: Measured) -> None:
        d, C = self.dim, self.context
        nothing, share, predicted = [0] * d, fmpq(1, C), fmpq(2, d * C + 2)
        layers = [
            Heads(self.mean, share),
            Heads(nothing, share, self.guess),
            Heads(nothing, share, None, self.guess_bias),
            Heads(self.mean, share, self.guess, self.guess_bias),
        ]
        slopes = [(layer.least() - descent_risk(d, share)) / layer.guess_error for layer in layers]
        off = [slope - predicted for slope in slopes]
        m.zero("slope_errors", off, "gap over |w*|^2, |v|^2, b^2 or |w* - v|^2 + b^2, less 2 / (d C + 2)")
        m.control("the same with 2 / (d C)", slopes[0] - fmpq(2, d * C), of="slope_errors")
        m.number("slope", slopes[0], "the gap over |w*|^2")
