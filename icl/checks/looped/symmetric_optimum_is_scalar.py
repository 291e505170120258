"""looped: among symmetric matrices, applied L times, the best is a multiple of Sigma^-1."""

from __future__ import annotations

from dataclasses import dataclass

from flint import fmpq

from icl.checks.looped.settings import Looped
from icl.checks.statement import Blurred, Measured, setting
from icl.theory.looped import normal
from icl.theory.looped.plane import coefficients
from icl.theory.looped.search import lowest, value
from icl.theory.looped.symmetric import symmetric_are_above
from icl.theory.roots import is_positive, near


@dataclass
class SymmetricOptimumIsScalar(Looped):
    dim: int = setting(2, 2, 4, most=20, beyond="the recursion takes minutes")

    where, title = "statement 4", "Among symmetric matrices a scalar is best"
    claim = "Of all symmetric matrices, applied L times, a multiple of Sigma^-1 has the least risk."
    formula = r"\min_{A = A^\top} f(A) = \min_a f(a I)"

    def expected(self) -> str:
        return "holds" if self.dim == 2 or self.layers == 1 else "undecided"

    def measure(self, m: Measured) -> None:
        step, least = self.steps.optimum
        above: bool | None = None
        if self.dim == 2:
            terms = coefficients(self.layers, self.context)
            above = symmetric_are_above(terms) or None
        elif self.layers == 1:
            above = True  # convex, and the same for every turn of A
        elif self.layers <= normal.MOST_LAYERS:
            excess = self._excess() / least - 1
            above = False if excess < 0 else None
            about = "least risk found with two eigenvalues over the best multiple's, less 1"
            m.number("excess", excess, about, searched=True)
        m.true("symmetric", above, "f(a I + h H) >= f(a I) for all symmetric H")
        about = "1 if the coefficient of h^2 is positive for every a, in this dimension"
        m.number("local_is_positive", int(is_positive(self.steps.symmetric_curvature)), about)
        wrong = self.steps.polynomial(near(step, 12) * fmpq(11, 10)) / least - 1
        if wrong.contains(0):
            raise Blurred
        m.control("risk of 1.1 times the best multiple over its own, less 1", wrong, wants="positive")

    def _excess(self) -> fmpq:
        """Return the least risk found of a I + b D, D the identity in some directions and 0 in the others."""
        families = [normal.stretched(self.dim, self.context, self.layers, k) for k in range(1, self.dim)]
        ends = [lowest(terms, self.steps.optimum[0]) for terms in families]
        return min(
            value(terms, near(a, 15), near(b, 15)) for terms, (a, b) in zip(families, ends, strict=True)
        )
