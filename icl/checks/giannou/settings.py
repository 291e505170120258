"""Settings of statements about the regularised logistic loss (3.5): sizes, mu, drawn problems."""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from icl.checks.statement import UNREFUTED, Statement, setting
from icl.errors import whole
from icl.theory.giannou.logistic import Logistic, Point, direction, draw
from icl.theory.giannou.newton_step import inversion_steps
from icl.theory.rationals import rational


def draw_mu(rng: Random, share: float, drawn: Mapping[str, Any]) -> float:
    """Draw mu from .1 down to .02 and up to 1000: below, steps need more neurons than tries have."""
    return float(f"{10 ** (-1 + share * rng.uniform(-0.7, 4)):.3g}")


@dataclass
class LogisticProblem(Statement):
    dim: int = setting(5, 1, 8, most=64, beyond="the balls of all problems take minutes")
    context: int = setting(26, 1, 30, most=1000, beyond="the balls of all problems take minutes")
    mu: float = setting(0.1, 1e-4, 1e3)
    seed: int = setting(0, 0)

    paper, law = "giannou", "|a_i| <= 1, y_i = +-1; f(x) = 1/n sum log(1 + exp(-y_i <x, a_i>)) + mu/2 |x|^2"

    def draw(self, rng: Random) -> Logistic:
        return draw(rng, self.context, self.dim, rational(self.mu))


@dataclass
class LogisticProblems(LogisticProblem):
    problems: int = setting(8, 1, 8, most=10_000, beyond="they take minutes")  # drawn

    def far(self, loss: Logistic, rng: Random, least: int) -> Point:
        """Return a point in a random direction, from 10^least to 100 away from 0."""
        length = rational(float(f"{10 ** rng.uniform(least, 2):.3g}"))
        return loss.at(length * direction(rng, self.dim))


@dataclass
class NewtonSteps(LogisticProblem):
    """And neurons for each function (`width`), inversion steps k (null: what mu takes)."""

    mu: float = setting(0.1, 1e-4, draw=draw_mu)
    width: int = setting(2000, 256, 2000, most=10**6, beyond="the functions take minutes")
    inversion: int | None = None

    tries = 5  # each takes some tenths of a second

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("check.context", self.context, self.dim)  # [I 0] is d x n
        if self.inversion is not None:
            whole("check.inversion", self.inversion, 1, 64)

    def expected(self) -> str:
        return "holds" if self.inversion is None else UNREFUTED

    @property
    def k(self) -> int:
        return inversion_steps(rational(self.mu)) if self.inversion is None else self.inversion
