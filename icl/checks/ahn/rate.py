"""Ahn et al. 2023, sections 3 and 4.2: what a step along Sigma^-1 gains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from random import Random
from typing import Any

from flint import arb, fmpq, fmpq_mat

from icl.checks.statement import Measured, Statement, setting
from icl.errors import rising
from icl.theory.one_layer import OneLayer
from icl.theory.rationals import diagonal, identity

MOST = 10**12


def draw_conditions(rng: Random, share: float, drawn: Mapping[str, Any]) -> list[int]:
    return sorted({round(10 ** rng.uniform(0.4, 1 + 11 * share)) for _ in range(4)})


@dataclass
class Rate(Statement):
    dim: int = setting(5, 2, 10, most=64, beyond="rationals of this length take minutes")
    context: int = setting(20, 1, 10**12)
    conditions: Sequence[int] = setting((4, 16, 64, 256), draw=draw_conditions)

    paper, where = "ahn", "Sections 3 and 4.2"
    title = "Section 4.2: the rate and the condition number"
    law = (
        "x ~ N(0, Sigma), w ~ N(0, Sigma^-1), n examples, y = w.x; the eigenvalues of Sigma are in geometric "
        "progression from 1 to 1 / condition"
    )
    claim = (
        "A step preconditioned by Sigma^-1 reduces the risk by a factor that does not depend on the "
        "condition number of Sigma; a plain step reduces it less, the less the larger the condition number."
    )
    quote = (
        '"these can converge significantly faster than vanilla gradient descent when the problem is '
        'ill-conditioned" (after Theorem 3, Section 4.2)'
    )
    formula = (
        r"\min_a \frac{f(a \Sigma^{-1})}{f(0)} = \frac{d+1}{n+d+1} \le \min_a \frac{f(a I)}{f(0)} \to 1\quad "
        r"(\kappa(\Sigma) \to \infty)"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.conditions = rising("check.conditions", self.conditions, 2, MOST)

    def measure(self, m: Measured) -> None:
        d, n, plain_step = self.dim, self.context, identity(self.dim)
        stated = fmpq(d + 1, n + d + 1)
        sigmas = [diagonal([kappa ** (-i / (d - 1)) for i in range(d)]) for kappa in self.conditions]
        white = [share_left(sigma, sigma.inv(), n) for sigma in sigmas]
        plain = [share_left(sigma, plain_step, n) for sigma in sigmas]
        about = "share of the risk that a step along Sigma^-1 leaves minus (d + 1)/(n + d + 1), by condition"
        m.zero("factor_error", [share - stated for share in white], about)
        m.control("a plain step", plain[0] - stated, of="factor_error")
        advantages = [arb(w).log() / arb(p).log() for w, p in zip(white, plain, strict=True)]
        growth = [after / before - 1 for before, after in pairwise([arb(1), *advantages])]
        about = "least relative growth of the advantage from one condition number to the next, from 1"
        m.positive("least_growth", reduce(arb.min, growth), about)
        same = share_left(plain_step, plain_step, n)
        m.control("at Sigma = I, where both steps are one", stated / same - 1, of="least_growth")
        m.number("advantages", advantages, "plain steps that are as good as one along Sigma^-1, by condition")


def share_left(sigma: fmpq_mat, M: fmpq_mat, n: int) -> fmpq:
    """Return the least risk of one step along M over that of none: the risk is quadratic in the step."""
    layer = OneLayer(sigma, n, sigma.inv())
    none, ahead, back = (layer.risk_at(step * M) for step in (0, 1, -1))
    slope, curvature = (ahead - back) / 2, (ahead + back) / 2 - none
    return 1 - slope**2 / (4 * curvature * none)
