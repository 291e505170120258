"""giannou, Lemma B.9: far from 0 a damped Newton step with an error |eps| <= mu^2 does not lengthen x.

For |x| -> infinity H -> mu I and grad f ~ mu x, so lambda_f ~ sqrt(mu) |x| and the step is 2 / (2 + |x|) x:
it shortens x by 2, whatever mu. An outward error of mu^2 lengthens it again by mu^2, more for mu > sqrt(2).
B problems, D covariates.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from icl.checks.giannou.problems import LogisticProblems
from icl.checks.verdict import Bound, Control, Finding
from icl.errors import whole
from icl.random import generator

RADII = (10.0, 100.0, 1e3, 1e4, 1e5, 1e6)
ROUNDING = 1e-8  # |x| is up to 1e6, its last digits 1e-10
REMARKS = [
    "The proof bounds mu x^T H^{-1} x from below by mu^2 |x|^2. With H <= (1 + mu) I it is mu / (1 + mu) "
    "|x|^2, which is less once mu (1 + mu) > 1. The lemma is true for mu < sqrt(2), where the 2 by which "
    "a step shortens x exceeds mu^2, and false beyond; for every mu an error below 2 would do.",
    "Lemma B.10 rests on it: with errors of mu^2 > 2 iterates can grow without bound. Theorem 5.4 takes "
    "errors of at most .01 and is not touched.",
]


@dataclass(eq=False)
class LemmaB9(LogisticProblems):
    """Settings: size of the random problems, mu, number of problems (`samples`), seed."""

    reference = "Lemma B.9"
    claim = "For every mu > 0 there is C so that |x| >= C and |eps| <= mu^2 give |x'| <= |x|."

    mu: float = 2.0
    samples: int = 64

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("check.samples", self.samples, 1, 10_000)

    def measure(self) -> Finding:
        most, least = zip(*(self._growth(radius, self.mu**2) for radius in RADII), strict=True)
        none = [self._growth(radius, 0.0)[0] for radius in RADII]
        without_step = self.mu**2
        # Growth at every large radius, for every problem, leaves no C.
        if min(least[-3:]) > ROUNDING:
            verdict = "fails"
        else:
            verdict = "holds" if max(most[-3:]) < -ROUNDING else "undecided"
        bound = Bound(0.0, "the claim; rounding of |x| is far smaller", "growth_far_out")
        return Finding(
            verdict,
            {
                "growth_far_out": most[-1],
                "radii": list(RADII),
                "growth_by_radius": list(most),
                "growth_without_error": none,
                "limit": self.mu**2 - 2,
            },
            bound,
            Control("the outward error alone, without the step", without_step, without_step > ROUNDING),
            kinds={"growth_*": "tried", "limit": "exact", "radii": "exact"},
            notes=[
                "growth: |x'| - |x| at its largest over problems, the error mu^2 along the step's outcome."
            ],
            remarks=REMARKS,
        )

    def _growth(self, radius: float, error: float) -> tuple[float, float]:
        """(largest, least) |x'| - |x| over random problems at |x| = radius, the error outward."""
        rng = generator(self.seed, "check")
        loss = self.losses(rng, self.samples)
        x_BD = torch.from_numpy(rng.standard_normal((self.samples, self.dim)))
        x_BD = radius * x_BD / x_BD.norm(dim=1, keepdim=True)
        growth_B = loss.damped_step(x_BD).norm(dim=1) + error - x_BD.norm(dim=1)
        return float(growth_B.max()), float(growth_B.min())
