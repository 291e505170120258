"""xie, Lemma 1: the risk of multi-head LSA is not convex in its parameters (P_h, Q_h), for any H.

(P, Q) and (-P, -Q) give every prompt the same prediction, and halfway between them lies the layer that does
nothing, with risk d + |w*|^2: under convexity no weights could do better.

H heads, D covariates, C = `context` tokens, P = K = D + 1 token width.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from icl.checks.numbers import exact, finding
from icl.checks.rounding import ROUNDING
from icl.checks.settings import integer
from icl.checks.verdict import Control, Finding
from icl.checks.xie.support.convexity import violation
from icl.checks.xie.support.initial_guess import AroundPrior, risk_under
from icl.constructions.xie.initial_guess import heads_of_matrices, one_step_gd
from icl.random import generator
from icl.theory.closed_forms import isotropic_step
from icl.theory.quadratic import LabelMoments, SymmetricSpace, second_gram
from icl.theory.xie.initial_guess import gap, gd_risk, optimal_matrices
from icl.verdicts import ROUTE_ROUNDING

MAX_HEADS = 1000
PAIRS = 32
SOURCE = (
    "rounding of a risk, 2^-52 times the number and size of its terms. The violation must also agree with "
    "d + |w*|^2 minus the closed form of the risk at the points"
)
REMARKS = [
    'A.4 argues that a bilinear function is "known to be not convex", so its composition with a convex '
    "function is not convex either. This does not follow: if the outer function is constant, the "
    "composition is convex. The two points prove the lemma, for every H and for every law under which "
    "attention reduces the risk.",
    "The lemma does not leave global optimality open, as the paper says: in X_k = sum_h b_h a_hk^T the "
    "risk is a convex quadratic form, so weights that attain its minimum are global minimisers, and such "
    "weights exist for H >= d.",
]


@dataclass(eq=False)
class Lemma1(AroundPrior):
    """Settings: sizes, heads, prior mean w* (or its norm), seed of the control's points. y_q is 0."""

    heads: int = integer(11, 1, MAX_HEADS, "more only cost memory")

    reference = "Lemma 1; Appendix A.4"
    claim = "For every number of heads, the risk of multi-head LSA is not convex in (P_h, Q_h)."

    def __post_init__(self) -> None:
        super().__post_init__()
        self.risk = risk_under(self.law)

    def measure(self) -> Finding:
        (P_HPP, Q_HPP), expected = self._weights()
        least = self.risk.convex_bound()
        layer, points = self.risk.value_of_layer, ((P_HPP, Q_HPP), (-P_HPP, -Q_HPP))
        measured = float(violation(layer, *points))
        nothing = self.dim + float(self.law.mean_RD[0].square().sum())
        bound = least.rounding + ROUNDING * nothing
        in_X, eigenvalue, by_inverse, rounding = self._in_X(least.X_KPP)
        wrong = abs(measured - (nothing - expected))
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
                .means("difference of that amount from its closed form")
                .compared_by("violation_error", "exact moments of the prompts, and closed form")
                .at_most(bound, SOURCE),
                exact(predicted_violation=nothing - expected)
                .means("closed form of that amount")
                .compared_by("violation_error", "exact moments of the prompts"),
                exact(
                    risk_at_points=[float(layer(*point)) for point in points],
                    risk_at_midpoint=float(layer(0 * P_HPP, 0 * Q_HPP)),
                    least_risk=least.value,
                )
                .means(
                    risk_at_points="risks at the two points (P, Q) and (-P, -Q)",
                    risk_at_midpoint="risk at the midpoint, zero weights",
                    least_risk="least risk of any heads",
                )
                .also_by(
                    "closed forms",
                    risk_at_points=[expected, expected],
                    risk_at_midpoint=nothing,
                    least_risk=self._least(),
                    size=nothing,
                ),
                exact(smallest_eigenvalue_in_X=eigenvalue)
                .means("smallest eigenvalue of the risk as a quadratic form in X_k")
                .also_by(
                    "one over the norm of the form's inverse",
                    smallest_eigenvalue_in_X=by_inverse,
                    size=rounding / ROUTE_ROUNDING,
                ),
            ],
            Control(
                "the largest violation between random X_k, in which the risk is convex; neither a "
                "violation above rounding nor a negative eigenvalue may be found there",
                in_X,
                in_X <= bound and eigenvalue > -rounding,
            ),
            remarks=REMARKS,
        )

    def _weights(self) -> tuple[tuple[Tensor, Tensor], float]:
        """Return the optimum over all heads where H attains it, else one step of descent from 0; and its
        risk."""
        w_star_D, guess_D = self.law.mean_RD[0], self.law.guess_RD[0]
        if self.heads >= self.dim:
            weights = heads_of_matrices(optimal_matrices(w_star_D, guess_D, 0.0, self.context))
            risk = self._least()
        else:
            eta = isotropic_step(self.dim, self.context)
            P_PP, Q_PP = one_step_gd(guess_D, eta)
            weights = P_PP[None], Q_PP[None]
            # of E|w - eta S w|^2 only E|w|^2 knows the mean of w
            risk = gd_risk(self.dim, self.context) * (1 + float(w_star_D.square().sum()) / self.dim)
        padding = (0, 0, 0, 0, 0, self.heads - len(weights[0]))
        P_HPP, Q_HPP = (torch.nn.functional.pad(matrix, padding) for matrix in weights)
        return (P_HPP, Q_HPP), risk

    def _least(self) -> float:
        """Return the least risk of any heads in closed form."""
        w_star_D, guess_D = self.law.mean_RD[0], self.law.guess_RD[0]
        return gd_risk(self.dim, self.context) + gap(w_star_D, guess_D, 0.0, self.context)

    def _in_X(self, best_KPP: Tensor) -> tuple[float, float, float, float]:
        """Largest violation between X of the optimum's size; the form's least eigenvalue, this once more and
        its rounding."""
        noise = generator(self.seed, "control").standard_normal((2, PAIRS, *best_KPP.shape))
        first, second = best_KPP.norm() / best_KPP.numel() ** 0.5 * torch.from_numpy(noise)
        largest = float(violation(self.risk.value, (first,), (second,)).max())
        law = self.law
        moments = LabelMoments(law.Sigma_RDD[0], law.Sigma_w_RDD[0], law.mean_RD[0], 0.0)
        form_SS = SymmetricSpace(self.dim + 1).form(second_gram(moments, self.context))
        eigenvalues = torch.linalg.eigvalsh(form_SS)
        by_inverse = 1 / float(torch.linalg.matrix_norm(torch.linalg.inv(form_SS), 2))
        return largest, float(eigenvalues[0]), by_inverse, ROUNDING * float(eigenvalues[-1])
