"""looped: at which context lengths a symmetric matrix is best, at d = L = 2; every n is decided."""

from __future__ import annotations

from dataclasses import dataclass

from flint import fmpq_poly

from icl.checks.statement import Blurred, Measured, Statement, setting
from icl.theory.looped.equal_steps import EqualSteps
from icl.theory.looped.long_prompts import in_both, in_context, last_change, nodes
from icl.theory.looped.plane import coefficients
from icl.theory.looped.symmetric import scalar_is_least
from icl.theory.roots import evaluate


@dataclass
class TwoLoops(Statement):
    last: int = setting(14, 1, 30, most=1000, beyond="it is no such length")  # the last with one

    paper, origin, tries = "looped", "icl", 0
    where, title = "statement 10", "Two loops in two dimensions: symmetric up to n = 14"
    law = "x ~ N(0, Sigma), w ~ N(0, Sigma^-1), n examples, d = 2, one A for both layers, whitened"
    claim = "Of every context length n: a symmetric matrix minimises the risk exactly if n is at most `last`."
    formula = r"\min_A f(A) = \min_{A = A^\top} f(A) \iff n \le 14,\quad d = L = 2"

    def expected(self) -> str:
        return "holds" if self.last == 14 else "fails"

    def measure(self, m: Measured) -> None:
        change = last_change(2, 2)
        if (whole := change.floor().unique_fmpz()) is None:
            raise Blurred
        found = int(whole)
        about = "the largest n with a symmetric minimiser, less the one that is stated"
        m.zero("last", found - self.last, about)
        m.number("last_change", change, "the largest real n at which the coefficient of b^2 changes its sign")
        about = "f(a I + h H) >= f(a I) for every a, h and n: two polynomials in n without a change of sign"
        m.true("symmetric_above", self._symmetric_above(), about)
        steps = [EqualSteps(2, n, 2) for n in range(1, found + 1)]
        least = all(scalar_is_least(coefficients(2, one.context), one.optimum[0]) for one in steps)
        m.true("minimal", least or None, "no matrix is below the best multiple, at each n up to it")
        beyond = EqualSteps(2, found + 1, 2)
        step = beyond.optimum[0]
        about = "minus the coefficient of b^2 at the next n, of one sign from there on"
        m.positive("fall", -evaluate(beyond.antisymmetric_curvature, step), about)
        about = "minus that of h^2"
        m.control(about, -evaluate(beyond.symmetric_curvature, step), of="fall", wants="negative")

    def _symmetric_above(self) -> bool:
        """Prove, for n >= 1, that the coefficient of h^2 has no real root a and a positive leading term, and
        that the coefficient of h^4 is positive."""
        terms = {n: coefficients(2, n) for n in nodes(2)}
        square, fourth = (in_both(2, {n: one[0, k] for n, one in terms.items()}) for k in (2, 4))
        leading = {n: fmpq_poly([one[0, 2].leading_coefficient()]) for n, one in terms.items()}
        no_root = all(c <= 0 for c in in_context(square.discriminant("a")).coeffs())
        positive = (in_both(2, leading), fourth)
        return no_root and all(c >= 0 for poly in positive for c in in_context(poly).coeffs())
