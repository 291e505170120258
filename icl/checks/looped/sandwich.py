"""looped: the bound on the minimiser that a reading note quotes, at the reader's sizes.

Quoted from a public reading note of Gatmiry, Saunshi, Reddi, Jegelka, Kumar, ICML 2024 (arXiv 2410.08292),
whose text was not at hand: any global minimiser has u = 0 and (1 - c) Sigma^-1 <= A <= (1 + c) Sigma^-1 with
c = 8 delta d^(1/(2L)), delta = (8 L d / sqrt n)^(1/(2L)).
"""

from __future__ import annotations

from dataclasses import dataclass

from icl.checks.looped.support import second_route
from icl.checks.looped.support.settings import LoopedSettings
from icl.checks.numbers import exact, finding
from icl.checks.settings import integer
from icl.checks.verdict import Control, Finding

SOURCE = "from there on the left side is no longer positive and the bound excludes nothing near 0"


@dataclass(eq=False)
class Sandwich(LoopedSettings):
    """Settings: of LoopedSettings."""

    dim: int = integer(5, 1, 20, "a search on draws takes minutes")
    layers: int = integer(2, 1, 8)

    reference = "statement 9, a reading note's quotation"
    claim = "At these d, n, L the quoted c is below 1, so that the sandwich says something of the minimiser."

    def measure(self) -> Finding:
        c, enough = quoted_c(self.dim, self.context, self.layers), needed_context(self.dim, self.layers)
        beyond = quoted_c(self.dim, 4 * enough, self.layers)
        steps, n = self.steps, self.context
        power = c ** (4 * self.layers)  # c is proportional to n^(-1 / 4 L)
        return finding(
            [
                exact(c=c)
                .means("quoted half width of the sandwich, in units of Sigma^-1")
                .by_definition()
                .at_most(1.0, SOURCE),
                exact(needed_context=float(enough), missing_factor=float(enough / self.context))
                .means(
                    needed_context="context length from which c < 1",
                    missing_factor="ratio of that context length to the given one",
                )
                .also_by(
                    "c as a power of the context length", needed_context=power * n, missing_factor=power
                ),
                exact(scalar_step=steps.best)
                .means("best multiple of Sigma^-1")
                .confirmed(scalar_step=second_route.scalar_step(self)),
                exact(distance=abs(steps.best - 1))
                .means("its distance from Sigma^-1, which c would have to cover")
                .by_definition(),
            ],
            Control("c at four times the context that is needed: it must be below 1", beyond, beyond < 1),
            notes=[
                "The paper's text was not at hand: the formula is a public reading note's quotation of it."
            ],
            remarks=[
                "The quoted sandwich bounds the symmetric part of A. It does not contradict an antisymmetric "
                "part, of which a quadratic form sees nothing."
            ],
        )


def quoted_c(dim: int, context: int, layers: int) -> float:
    delta = (8 * layers * dim / context**0.5) ** (1 / (2 * layers))
    return float(8 * delta * dim ** (1 / (2 * layers)))


def needed_context(dim: int, layers: int) -> int:
    """Solve c = 1: sqrt n = 8^(2 L + 1) L d^2."""
    return int((8 ** (2 * layers + 1) * layers * dim**2) ** 2)
