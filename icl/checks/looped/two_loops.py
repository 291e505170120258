"""looped: at which context lengths a symmetric matrix is best, at d = L = 2; every n is decided."""

from dataclasses import dataclass

from flint import fmpq_poly

from icl.checks.looped.settings import measure_fall
from icl.checks.statement import Measured, Statement, setting
from icl.theory.looped.equal_steps import EqualSteps
from icl.theory.looped.long_prompts import last_change, next_whole, resultant
from icl.theory.looped.plane import coefficients
from icl.theory.looped.symmetric import scalar_is_least


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
        found = next_whole(change) - 1
        about = "the largest n with a symmetric minimiser, less the one that is stated"
        m.zero("last", found - self.last, about)
        m.number("last_change", change, "the largest real n at which the coefficient of b^2 changes its sign")
        factor = max((poly for poly, _ in resultant(2, 2).factor()[1]), key=fmpq_poly.degree)
        about = "the factor of the largest degree of the resultant: its coefficients from n^0 on"
        m.number("factor", factor.coeffs(), about)
        steps = [EqualSteps(2, n, 2) for n in range(1, found + 1)]
        least = all(scalar_is_least(coefficients(2, one.context), one.optimum[0]) for one in steps)
        m.true("minimal", least or None, "no matrix is below the best multiple, at each n up to it")
        measure_fall(m, EqualSteps(2, found + 1, 2), ", at the next n")  # of one sign from there on
