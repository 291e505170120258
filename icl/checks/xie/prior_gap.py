"""xie, sections 5.1.2 and 5.1.3: the gap between multi-head LSA and one gradient step."""

from __future__ import annotations

from dataclasses import dataclass

from flint import fmpq

from icl.checks.statement import Measured, setting
from icl.checks.xie.settings import AroundPrior, some_bias, some_vector, vector
from icl.errors import InputError, real
from icl.theory.xie.heads import Heads, descent_risk


@dataclass
class PriorGap(AroundPrior):
    """`guess_vector` (or its norm) and `guess_bias` are v and b, for w* = 0."""

    guess_vector: tuple[float, ...] | None = setting(None, draw=some_vector)
    guess_vector_norm: float | None = None
    guess_bias: float = setting(1.0, draw=some_bias)

    where = "Sections 5.1.2 and 5.1.3; Figures 3 (b) and 4"
    title = "Section 5.1: the gap is linear in |w*|^2, |v|^2 and b^2"
    law = "x ~ N(0, I), w ~ N(w*, I), C examples, y = w.x; y_q = 0, or w* = 0 and y_q = v.x_q + b"
    claim = (
        "The least risk of multi-head LSA less the risk of one gradient step from w* with the best step size "
        "is proportional to |w*|^2, |v|^2 and b^2: it is 2 (|w* - v|^2 + b^2) / (d C + 2)."
    )
    quote = '"this gap increases linearly with the squared norm of the prior mean" (Section 5.1.2)'
    formula = (
        r"\min_{H, P, Q} R_{\text{LSA}} - \min_\eta R_{\text{GD}} ="
        r" \frac{2 \left(\|w^\star - v\|^2 + b^2\right)}{d C + 2}"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.guess = vector("guess_vector", self.guess_vector, self.guess_vector_norm, self.dim, 1.0)
        self.guess_bias = real("check.guess_bias", self.guess_bias)
        for key, size in (
            ("prior_mean", any(self.mean)),
            ("guess_vector", any(self.guess)),
            ("guess_bias", self.guess_bias),
        ):
            if not size:
                raise InputError(f"check.{key}: is zero, the slope is the gap for each unit of its square")

    def measure(self, m: Measured) -> None:
        d, C = self.dim, self.context
        nothing, share, predicted = [0] * d, fmpq(1, C), fmpq(2, d * C + 2)
        layers = [
            Heads(self.mean, share),
            Heads(nothing, share, self.guess),
            Heads(nothing, share, None, self.guess_bias),
        ]
        slopes = [_gap(layer) / layer.guess_error for layer in layers]
        off = [slope - predicted for slope in slopes]
        m.zero("slope_errors", off, "gap over |w*|^2, |v|^2 or b^2, less 2 / (d C + 2)")
        m.control("the same with 2 / (d C)", slopes[0] - fmpq(2, d * C), of="slope_errors")
        m.number("slope", slopes[0], "the gap over |w*|^2")


def _gap(layer: Heads) -> fmpq:
    return layer.least() - descent_risk(layer.d, layer.share)
