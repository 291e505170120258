"""looped: how much the best matrix that a search finds gains on the best multiple of Sigma^-1."""

from dataclasses import dataclass

from flint import fmpq

from icl.checks.looped.settings import Searched
from icl.checks.statement import Measured


@dataclass
class Gain(Searched):
    where, title = "statement 3", "What the best matrix gains on the best scalar"
    claim = "Some matrix, applied L times, has a lower risk than every multiple of Sigma^-1."
    formula = r"\min_A f(A) < \min_a f(a I)"

    def measure(self, m: Measured) -> None:
        found, (_, least) = self.found(), self.steps.optimum
        gain = 1 - found.risk / least if found.planes else fmpq(0)
        about = "some matrix has a lower risk than every multiple of Sigma^-1"
        m.true("lower", self.lower(bool(gain > 0)), about)
        about = "share of the best scalar's risk that the best matrix found saves"
        m.number("gain", gain, about, searched=True)
        wrong = found.a if found.planes else found.a * fmpq(11, 10)
        about = "gain of the same matrix without its rotation (of a wrong step where there is none)"
        m.control(about, 1 - self.steps.polynomial(wrong) / least, wants="negative")
