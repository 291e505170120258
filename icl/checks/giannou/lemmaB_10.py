"""giannou, Lemma B.10: damped Newton steps with errors |eps_t| <= mu^2 stay within a constant C of 0.

With rho = grad f - H x, of norm at most 1 (every |p + p (1 - p) m| <= 1, m the margin), a step is
x' = (1 - eta) x - eta H^{-1} rho + eps with |H^{-1} rho| <= 1/mu and, for r = |x|,
(r - 2/mu)^+ <= lambda_f / sqrt(mu) <= r + 1/mu + sqrt(BEND / mu). Hence bounds on |x'| - |x| from both sides,
each tending to mu^2 - 2: for mu < sqrt(2) an explicit C, for mu > sqrt(2) growth without end.
B sequences, D covariates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from icl.checks.giannou.problems import LogisticProblems
from icl.checks.verdict import Bound, Control, Finding, decide
from icl.errors import whole
from icl.random import generator
from icl.theory.quadratic import EPSILON

BEND = 0.44  # p (1 - p) m^2 is at most .4393
STARTS = (0.0, 0.1, 0.5, 1.0)  # |x_0| as shares of C
TOO_LARGE = 3.0  # a step shortens x by 2 at most: outward errors of this norm win for every mu
REMARKS = [
    "The lemma rests on B.9 and is true for mu < sqrt(2), where C = max(|x_0|, C_1 + mu^2) with the C_1 "
    "measured here serves every problem. For mu > sqrt(2) outward errors of norm mu^2 win over the 2 by "
    "which a step shortens x, and |x_t| grows by about mu^2 - 2 a step from far out on.",
]


@dataclass(eq=False)
class LemmaB10(LogisticProblems):
    """Settings: size of the random problems, mu, `steps` of each sequence, number of problems, seed."""

    reference = "Lemma B.10"
    claim = (
        "For every mu > 0 iterates with errors |eps_t| <= mu^2 stay within a constant C that depends on mu."
    )

    mu: float = 2.0
    steps: int = 200
    samples: int = 64

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("check.steps", self.steps, 2, 10_000)
        whole("check.samples", self.samples, 1, 10_000)

    def measure(self) -> Finding:
        error, constant = self.mu**2, constant_of(self.mu)
        measured = {"limit_of_growth": error - 2, "constant": constant}
        if constant is None:
            verdict, bound, of_case = self._without_constant(error)
        else:
            share = max(self._largest(start * constant, error) for start in STARTS) / constant
            verdict, of_case = decide(share, 1.0), {"largest_over_constant": share}
            bound = Bound(1.0, "the explicit C, from bounds on one step", "largest_over_constant")
        wrong, rounding = self._growth(beyond(self.mu, TOO_LARGE), TOO_LARGE)
        return Finding(
            verdict,
            {**of_case, **measured},
            bound,
            Control(
                f"least growth of |x_t| in a step, from far out, with outward errors of norm {TOO_LARGE:g}",
                wrong,
                wrong > rounding,
            ),
            notes=["Errors outward, inward and at random, each of the full norm mu^2 at every step."],
            remarks=REMARKS,
            kinds={"*": "exact", "least_growth_in_a_step": "tried", "largest_over_constant": "tried"},
        )

    def _without_constant(self, error: float) -> tuple[str, Bound, dict[str, float]]:
        """mu >= sqrt(2): every step from `beyond` on must lengthen x, by an amount that does not shrink."""
        radius = beyond(self.mu, error)
        least, rounding = self._growth(radius, error) if math.isfinite(radius) else (0.0, math.inf)
        bound = Bound(rounding, "rounding of |x|: a positive growth leaves no C", "least_growth_in_a_step")
        verdict = "fails" if least > rounding else "undecided"
        return verdict, bound, {"least_growth_in_a_step": least, "from_norm": radius}

    def _growth(self, radius: float, error: float) -> tuple[float, float]:
        """The least |x'| - |x| over problems and steps, errors outward; what rounding can make of it."""
        norms_TB = self._norms(radius, error, "outward")
        return float(norms_TB.diff(dim=0).min()), float(64 * self.dim * EPSILON * norms_TB.max())

    def _largest(self, radius: float, error: float) -> float:
        """The largest |x_t|, t >= 1, over problems and all errors."""
        errors = ("outward", "inward", "random")
        return max(float(self._norms(radius, error, direction)[1:].max()) for direction in errors)

    def _norms(self, radius: float, error: float, direction: str) -> Tensor:
        """|x_t| for t = 0 .. steps, from |x_0| = radius."""
        rng = generator(self.seed, "check")
        loss = self.losses(rng, self.samples)
        x_BD = radius * _units(torch.from_numpy(rng.standard_normal((self.samples, self.dim))))
        norms_TB = [x_BD.norm(dim=1)]
        for _ in range(self.steps):
            x_BD = loss.damped_step(x_BD)
            aim_BD = torch.from_numpy(rng.standard_normal(x_BD.shape)) if direction == "random" else x_BD
            x_BD = x_BD + (-error if direction == "inward" else error) * _units(aim_BD)
            norms_TB.append(x_BD.norm(dim=1))
        return torch.stack(norms_TB)


def constant_of(mu: float) -> float | None:
    """C_1 + mu^2, with |x'| <= |x| from C_1 on and |x'| <= |x| + mu^2 below; None for mu >= sqrt(2).

    C_1 solves mu^2 = 2 (r - 1/mu) / (2 + r + 1/mu + sqrt(BEND / mu)); the right side grows with r.
    """
    half = mu**2 / 2
    if half >= 1:
        return None
    return (1 / mu + half * (2 + 1 / mu + math.sqrt(BEND / mu))) / (1 - half) + mu**2


def beyond(mu: float, error: float) -> float:
    """|x| from which an outward error of norm error > 2 lengthens x in every step that follows.

    |x'| - |x| >= error - 2 (r + 1/mu) / (2 + r - 2/mu) for r >= 2/mu; twice the root, to be well inside.
    """
    if error <= 2:
        return math.inf
    return 2 * max(2 / mu, (2 / mu - error * (2 - 2 / mu)) / (error - 2)) + 1


def _units(x_BD: Tensor) -> Tensor:
    return torch.nn.functional.normalize(x_BD, dim=1)
