"""xie, Lemma 2: the risk of y_q-LSA is not convex in its parameters (P, Q, v).

As for Lemma 1, with v held at w*: (P, Q, w*) and (-P, -Q, w*) predict the same, and halfway between them lies
the guess <w*, x_q> alone, with risk d. In v alone, and in (X_k, v) with X_k = b a_k^T, the risk is convex.

D covariates, C = `context` tokens, P = K = D + 1 token width.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from icl.checks.numbers import exact, finding, tried
from icl.checks.rounding import ROUNDING
from icl.checks.verdict import Control, Finding
from icl.checks.xie.support.convexity import violation
from icl.checks.xie.support.initial_guess import AroundPrior, risk_under
from icl.checks.xie.support.yq_lsa import read_in
from icl.constructions.xie.initial_guess import one_step_gd
from icl.random import generator
from icl.theory.closed_forms import isotropic_step
from icl.theory.xie.initial_guess import gd_risk

PAIRS = 32
SOURCE = (
    "rounding of a risk, 2^-52 times the number and size of its terms. The violation must also agree with "
    "d, the risk at the midpoint, minus the risk of one gradient step"
)
REMARKS = [
    "In v alone the risk is convex, at any P and Q: a quadratic function of v whose second derivative is "
    "2 E (1 + <G, X_p>)^2 I, the same at every v.",
    "The lemma does not leave the global optimum open, as section 4.2 says: every y_q-LSA is a point (X_k "
    "+ v_k X_p, v) of a convex quadratic form, and one step of gradient descent attains its minimum "
    "(xie/theorem4).",
]


@dataclass(eq=False)
class Lemma2(AroundPrior):
    """Settings: sizes, prior mean w* (or its norm), seed of the control's points."""

    reference = "Lemma 2; Appendix B.4"
    claim = "The risk of y_q-LSA is not convex in (P, Q, v)."

    def __post_init__(self) -> None:
        super().__post_init__()
        self.risk = risk_under(self.law)

    def measure(self) -> Finding:
        (in_v, in_X, curvature), w_star_D = self._convex_parts(), self.law.mean_RD[0]
        P_PP, Q_PP = one_step_gd(w_star_D, isotropic_step(self.dim, self.context))
        points = (P_PP, Q_PP, w_star_D), (-P_PP, -Q_PP, w_star_D)
        measured = float(violation(self._risk, *points))
        midpoint = float(self._risk(0 * P_PP, 0 * Q_PP, w_star_D))
        predicted = self.dim - gd_risk(self.dim, self.context)
        bound = 2 * self.risk.convex_bound(free_direct=True).rounding + ROUNDING * self.dim
        wrong = max(abs(measured - predicted), abs(midpoint - self.dim))
        return finding(
            [
                # two points without it prove nothing
                exact(violation=measured)
                .means(
                    "amount by which the risk at the midpoint exceeds the mean of the risks at the two points"
                )
                .compared_by("violation_error", "its closed form")
                .above(bound, SOURCE, otherwise="undecided"),
                exact(violation_error=wrong)
                .means(
                    "largest difference of that amount, and of the risk at the midpoint, from their "
                    "closed forms"
                )
                .compared_by("violation_error", "exact moments of the prompts, and closed forms")
                .at_most(bound, SOURCE),
                exact(predicted_violation=predicted)
                .means("closed form of that amount")
                .compared_by("violation_error", "exact moments of the prompts"),
                exact(risk_at_points=[float(self._risk(*point)) for point in points])
                .means("risks at the two points (P, Q, w*) and (-P, -Q, w*)")
                .also_by(
                    "the closed form d (d + 1) / (C + d + 1)",
                    risk_at_points=2 * [gd_risk(self.dim, self.context)],
                    size=self.risk.constant,
                ),
                exact(risk_at_midpoint=midpoint)
                .means("risk at the midpoint (0, 0, w*)")
                .compared_by("violation_error", "the closed form d"),
                tried(
                    violation_in_v=in_v, violation_in_X_and_v=in_X, smallest_eigenvalue_in_v=curvature
                ).means(
                    violation_in_v="largest such amount between random points that differ in v alone",
                    violation_in_X_and_v="largest such amount between random points in (X_k, v)",
                    smallest_eigenvalue_in_v="least second derivative of the risk in v",
                ),
            ],
            Control(
                "the largest violation between random points that differ in v alone, or in (X_k, v), "
                "where the risk is convex; neither a violation above rounding nor a negative second "
                "derivative may be found there",
                max(in_v, in_X),
                max(in_v, in_X) <= bound and curvature > 0,
            ),
            remarks=REMARKS,
        )

    def _risk(self, P_PP: Tensor, Q_PP: Tensor, v_D: Tensor) -> Tensor:
        return self.risk.value_of_layer(P_PP[None], Q_PP[None], read_in(v_D))

    def _convex_parts(self) -> tuple[float, float, float]:
        """Largest violations in v at random P and Q, and in (X_k, r); least second derivative in v."""
        rng, P = generator(self.seed, "control"), self.dim + 1
        P_PP, Q_PP = torch.from_numpy(rng.standard_normal((2, P, P))) / P
        v_2BD = torch.from_numpy(rng.standard_normal((2, PAIRS, self.dim)))
        X_2BKPP = torch.from_numpy(rng.standard_normal((2, PAIRS, P, P, P))) / P

        def in_v_alone(v_D: Tensor) -> Tensor:
            return self._risk(P_PP, Q_PP, v_D)

        in_v = [violation(in_v_alone, (a,), (b,)) for a, b in zip(*v_2BD, strict=True)]
        r_2BK = torch.nn.functional.pad(v_2BD, (0, 1))
        in_X = violation(self.risk.value, (X_2BKPP[0], r_2BK[0]), (X_2BKPP[1], r_2BK[1]))
        hessian_DD = torch.autograd.functional.hessian(in_v_alone, v_2BD[0, 0])
        return float(torch.stack(in_v).max()), float(in_X.max()), float(torch.linalg.eigvalsh(hessian_DD)[0])
