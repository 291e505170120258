"""looped: how much the best matrix that a search finds gains on the best multiple of Sigma^-1."""

from __future__ import annotations

from dataclasses import dataclass

from flint import fmpq

from icl.checks.looped.settings import LOWER_FROM, Searched
from icl.checks.statement import OPEN, Measured
from icl.theory.looped.plane import coefficients
from icl.theory.looped.symmetric import scalar_is_least


@dataclass
class Gain(Searched):
    where, title = "statement 3", "What the best matrix gains on the best scalar"
    claim = "Some matrix, applied L times, has a lower risk than every multiple of Sigma^-1."
    formula = r"\min_A f(A) < \min_a f(a I)"

    def expected(self) -> str:
        if self.dim == 1 or self.layers == 1:
            return "fails"
        first = LOWER_FROM.get((self.dim, self.layers), 8 * self.dim)
        return "holds" if self.context >= first else "fails" if self.dim == self.layers == 2 else OPEN

    def measure(self, m: Measured) -> None:
        found, (_, least) = self.found(), self.steps.optimum
        gain = 1 - found.risk / least if found.planes else fmpq(0)
        about = "some matrix has a lower risk than every multiple of Sigma^-1"
        m.true("lower", self._lower(bool(gain > 0)), about)
        about = "share of the best scalar's risk that the best matrix found saves"
        m.number("gain", gain, about, searched=True)
        wrong = found.a if found.planes else found.a * fmpq(11, 10)
        about = "gain of the same matrix without its rotation (of a wrong step where there is none)"
        m.control(about, 1 - self.steps.polynomial(wrong) / least, wants="negative")
        self.paths(m, found)

    def _lower(self, found: bool) -> bool | None:
        """One layer is convex in A, and has a multiple of Sigma^-1 as its minimum; so has one dimension."""
        if found:
            return True
        if self.dim == 1 or self.layers == 1:
            return False
        plane = self.dim == self.layers == 2
        if plane and scalar_is_least(coefficients(2, self.context), self.steps.optimum[0]):
            return False
        return None
