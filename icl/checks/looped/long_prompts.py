"""looped: from some context length on, at every one, the best multiple of Sigma^-1 is a saddle."""

from dataclasses import dataclass

from flint import arb

from icl.checks.looped.settings import DEEP, Looped, measure_fall
from icl.checks.statement import Measured, setting
from icl.theory.looped.equal_steps import EqualSteps
from icl.theory.looped.long_prompts import last_change, limit_curvature, negative_from, next_whole
from icl.theory.roots import evaluate


@dataclass
class LongPrompts(Looped):
    dim: int = setting(2, 2, 6, most=20, beyond="the recursion takes minutes")
    context: int = setting(1000, 1, 100)
    layers: int = setting(2, 2, 6, most=8, beyond=DEEP)

    where, title = "statement 9", "For long prompts the best scalar is a saddle"
    claim = (
        "From some context length on the best multiple of Sigma^-1 is a saddle, so that no symmetric matrix "
        "minimises the risk; at every d in the limit."
    )
    formula = (
        r"n^{L-1} \frac{1}{2} \frac{d^2}{db^2} f(a^\ast I + b K)\Big|_{b = 0} \to c_\infty < 0,"
        r"\quad K^\top = -K,\ \|K\|_F = 1"
    )

    def measure(self, m: Measured) -> None:
        limit, last = limit_curvature(self.layers), last_change(self.dim, self.layers)
        first = EqualSteps(self.dim, next_whole(last), self.layers)
        about = "the limit is negative at every d: no coefficient in powers of d - 2 is positive"
        m.true("at_every_dim", negative_from(limit, 2), about)
        m.number("limit_curvature", limit(self.dim), "the limit of n^(L-1) times the coefficient of b^2")
        m.number("limit_coefficients", limit.coeffs(), "its coefficients as a polynomial in d, from d^0 on")
        about = "the largest real n at which the coefficient of b^2 can change its sign, or d"
        m.number("last_change", last, about)
        m.number("first_context", first.context, "context length from which on every one has a saddle")
        measure_fall(m, first, ", there")
        about = "n^(L-1) times the coefficient of b^2 at this context length, over the limit"
        m.number("share_of_limit", self._share(arb(limit(self.dim))), about)

    def _share(self, limit: arb) -> arb:
        curvature = evaluate(self.steps.antisymmetric_curvature, self.steps.optimum[0])
        return curvature * arb(self.context) ** (self.layers - 1) / limit
