"""ahn, sections 3 and 4.2: preconditioning by Sigma^{-1} leads to faster convergence when Sigma is ill-
conditioned.

One step of descent on a prompt from w = 0, w ~ N(0, Sigma^{-1}), at its best step size: the risk at A = a
M is a quadratic in a, c_0 + c_1 a + c_2 a^2, whose least value is c_0 - c_1^2 / (4 c_2), by words in S.
With M = Sigma^{-1} the risk falls by the factor (D + 1)/(N + D + 1) whatever Sigma is; with M = I the
factor tends to 1 with the condition number. The advantage is the ratio of their logarithms: so many plain
steps as good as one.

D covariates, N = `context` tokens; the eigenvalues of Sigma are in geometric progression from 1 to
1/condition.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from icl.checks.ahn.support.linear_layer import risk_over_tasks
from icl.checks.numbers import exact, finding
from icl.checks.rounding import ROUNDING
from icl.checks.settings import in_range, integer, validate
from icl.checks.task_rule import BY_TASKS
from icl.checks.verdict import Control, Finding
from icl.errors import InputError
from icl.theory.expected_traces import sparse_a_risk
from icl.verdicts import ROUTE_ROUNDING

MOST = 10**4
Risk = Callable[[Tensor, Tensor, Tensor, int], Tensor | float]
SOURCE = "rounding, 64 eps times the condition number of Sigma"


def rising(conditions: Any) -> list[int]:
    """Return `check.conditions`, condition numbers in rising order."""
    if isinstance(conditions, str) or not isinstance(conditions, Sequence) or not conditions:
        raise InputError(f"check.conditions={conditions}: must be a list of condition numbers")
    beyond = "the plain factor does not change any more"
    found = [in_range("check.conditions", kappa, 2, MOST, beyond) for kappa in conditions]
    if any(later <= kappa for kappa, later in pairwise(found)):
        raise InputError(f"check.conditions={found}: must be in rising order")
    return found


@dataclass(eq=False)
class Rate:
    """Settings: dimension, context length, condition numbers of Sigma in rising order."""

    dim: int = integer(5, 2, 64, "the risk's words take dim^3 operations each")
    context: int = integer(20, 1)
    conditions: Sequence[int] = (4, 16, 64, 256)

    reference = "Section 3, the first property of eq. (6); section 4.2"
    claim = (
        "A step preconditioned by Sigma^-1 reduces the risk by a factor that does not depend on the "
        "condition number "
        "of Sigma; a plain step reduces it less, the less the larger the condition number."
    )

    def __post_init__(self) -> None:
        validate(self)
        self.conditions = rising(self.conditions)

    def measure(self) -> Finding:
        (white, advantages, steps), (white_again, *again) = (
            self._growth(risk) for risk in (sparse_a_risk, risk_over_tasks)
        )
        stated = math.log((self.dim + 1) / (self.context + self.dim + 1))
        bound = ROUNDING * max(self.conditions) * self.dim
        size = max(1.0, bound / ROUTE_ROUNDING)
        isotropic = math.log(self._factor(1, True)) / math.log(self._factor(1, False)) - 1
        return finding(
            [
                exact(least_growth=min(steps))
                .means(
                    "least relative growth of the advantage, log by log, from one condition number to the "
                    "next"
                )
                .also_by(BY_TASKS, least_growth=min(again[1]), size=size)
                .above(bound, SOURCE),
                exact(factor_error=max(abs(w / stated - 1) for w in white))
                .means(
                    "largest relative difference of the preconditioned log factor from that of (d+1)/(n+d+1)"
                )
                .also_by(BY_TASKS, factor_error=max(abs(w / stated - 1) for w in white_again), size=size)
                .at_most(bound, SOURCE),
                exact(advantages=advantages)
                .means("plain steps that are as good as one preconditioned, by condition")
                .also_by(BY_TASKS, advantages=again[0], size=size * max(advantages)),
            ],
            Control("the same growth at Sigma = I, where both steps are one", isotropic, isotropic <= bound),
        )

    def _growth(self, risk: Risk) -> tuple[list[float], list[float], list[float]]:
        """Return the log factors of the preconditioned step, the advantages and how they grow."""
        plain, white = (
            [math.log(self._factor(kappa, preconditioned, risk)) for kappa in self.conditions]
            for preconditioned in (False, True)
        )
        advantages = [a / b for a, b in zip(white, plain, strict=True)]
        return white, advantages, [b / a - 1 for a, b in pairwise([1.0, *advantages])]

    def _factor(self, condition: float, preconditioned: bool, risk: Risk = sparse_a_risk) -> float:
        """Return the least risk of one step as a share of that of none."""
        spectrum = condition ** -(torch.arange(self.dim, dtype=torch.float64) / (self.dim - 1))
        Sigma, inverse = torch.diag(spectrum), torch.diag(1 / spectrum)
        M = inverse if preconditioned else torch.eye(self.dim, dtype=torch.float64)

        def at(a: float) -> Tensor | float:
            return risk(a * M[None], Sigma, inverse, self.context)

        none, ahead, back = at(0.0), at(1.0), at(-1.0)
        slope, curvature = (ahead - back) / 2, (ahead + back) / 2 - none
        return float((none - slope**2 / (4 * curvature)) / none)
