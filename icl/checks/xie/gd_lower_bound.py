"""xie, section 5.1.1: for w* != 0 and y_q = 0 one gradient step from w* has a smaller risk than multi-head
LSA of any number of heads.

The paper sees it in training. It is exact: the least risk over all heads minus the risk of the step at its
best eta is 2 |w*|^2 / (d C + 2) > 0.

H heads, D covariates, C = `context` tokens, P = K = D + 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from icl.checks.numbers import exact, finding, tried
from icl.checks.verdict import Control, Finding, Weights
from icl.checks.xie.support.initial_guess import ROUNDING_OF_EXCESSES as OF_EXCESSES
from icl.checks.xie.support.initial_guess import ROUNDING_OF_GAPS as OF_THE_GAP
from icl.checks.xie.support.initial_guess import ROUNDING_OF_RISKS as SOURCE
from icl.checks.xie.support.initial_guess import AroundPrior, worst
from icl.checks.xie.support.judge_heads import judge_above_the_step, strict_verdict
from icl.checks.xie.support.saturation import BLUR, Saturation, best_multiple
from icl.errors import InputError
from icl.random import generator
from icl.theory.closed_forms import isotropic_step
from icl.theory.xie.initial_guess import gap, gd_risk

SAMPLES, NOISE = 64, 1e-3


@dataclass(eq=False)
class GdLowerBound(AroundPrior):
    """Settings: sizes, prior mean w* (or its norm), not zero, seed of the weights around the best ones."""

    reference = "Section 5.1.1; Figure 2 (b)"
    claim = (
        "For w* != 0 and y_q = 0, the risk of one gradient step from w* with the best step size is "
        "strictly less than the risk of multi-head LSA, for any weights and any number of heads."
    )
    needs_training = False  # true of any weights

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.law.mean_RD.any():
            raise InputError("check.prior_mean: section 5.1.1 is about w* != 0")

    def measure(self) -> Finding:
        case = Saturation(self.law)
        d, C, zero_D = case.dim, case.context, torch.zeros_like(case.w_star_D)
        predicted = gap(case.w_star_D, zero_D, 0.0, C)
        risks = gd_risk(d, C) + predicted
        # d (1 + (d + 1)/C) (eta - best)^2 is what another eta loses.
        step, reach = isotropic_step(d, C), (case.gap / (d * (1 + (d + 1) / C))) ** 0.5
        of_ratio = predicted * case.risk.constant / gd_risk(d, C) ** 2
        around = self._least_excess_around(case)
        error, undercut = abs(case.gap - predicted), case.gap - around
        off = max(abs(case.least.value - risks), case.risks_error)
        none = self._excesses_without_gap(case)
        excess, of_excess = worst(none)
        seen = [
            abs(case.gap - (1 + BLUR) * predicted) > case.gap_rounding,
            case.blurred > case.rounding,
            case.gap > max(rounding for _, rounding in none),
        ]
        return finding(
            [
                exact(gap=case.gap)
                .means("least risk of multi-head LSA minus the risk of the gradient step")
                .compared_by("gap_error", "the closed form 2 |w*|^2 / (d C + 2)")
                .judged(strict_verdict(case.gap, case.gap_rounding), ">", case.gap_rounding, OF_THE_GAP),
                exact(gap_error=error)
                .means("difference of the gap from 2 |w*|^2 / (d C + 2)")
                .compared_by("gap_error", "least mean square of a convex form, and closed form")
                .at_most(case.gap_rounding, OF_THE_GAP),
                exact(risks_error=off)
                .means("largest difference of the two risks from their closed forms")
                .compared_by("risks_error", "exact moments of the prompts, and closed forms")
                .at_most(case.rounding, SOURCE),
                tried(largest_undercut=undercut)
                .means("amount by which random weights near the best ones have a smaller risk than these")
                .at_most(case.rounding, SOURCE),
                exact(excess_of_the_step=excess)
                .means(
                    "excess of the step over the least risk of any heads, where the step is one of the heads"
                )
                .also_by(
                    "difference of the two risks",
                    excess_of_the_step=case.descent_risk - gd_risk(d, C),
                    size=case.risk.constant,
                )
                .at_most(of_excess, OF_EXCESSES),
                exact(gd_risk=case.descent_risk, lsa_risk=case.least.value)
                .means(
                    gd_risk="risk of one gradient step from w* with the best step size",
                    lsa_risk="least risk of multi-head LSA",
                )
                .compared_by("risks_error", "their closed forms"),
                exact(predicted_gap=predicted)
                .means("closed form 2 |w*|^2 / (d C + 2) of the gap")
                .compared_by("gap_error", "least mean square of a convex form"),
                exact(relative_gap=case.gap / case.descent_risk)
                .means("gap over the risk of the step")
                .also_by(
                    "quotient of the closed forms", relative_gap=predicted / gd_risk(d, C), size=of_ratio
                ),
                exact(best_eta=step)
                .means("best step size")
                .also_by(
                    "best multiple of a step from 0, by exact moments of the prompts",
                    best_eta=best_multiple(case),
                    size=case.risk.constant,
                ),
                exact(eta_from=step - reach, eta_to=step + reach)
                .means(
                    eta_from="least step size at which the step has a smaller risk than any LSA",
                    eta_to="largest step size at which the step has a smaller risk than any LSA",
                )
                .in_tests("risk of a step of these sizes, which is that of multi-head LSA"),
                tried(least_excess_around_best_weights=around).means(
                    "least excess over the step of random weights near the best ones"
                ),
            ],
            Control(
                "the smallest ratio to its bound of the gap, where the step is among the heads (w* = 0, "
                "or y_q = <w*, x_q>), and of errors of 1e-10 in the gap and in the terms of the risks",
                min(
                    case.gap / max(rounding for _, rounding in none),
                    BLUR * predicted / case.gap_rounding,
                    case.blurred / case.rounding,
                ),
                all(seen),
            ),
            remarks=[
                "The paper concludes this from trained models. It is exact: the least risk over all heads "
                "is the minimum of a convex form, and exceeds the risk of the step by 2 |w*|^2 / (d C + "
                "2).",
                f"The step size matters: outside {step - reach:.4g} < eta < {step + reach:.4g} multi-head "
                "LSA with enough heads is better than the gradient step.",
            ],
        )

    def _excesses_without_gap(self, case: Saturation) -> list[tuple[float, float]]:
        """Return the step's excess over the least risk where it is a head: w* = 0, y_q = <w*, x_q>."""
        law, heads = case.step()
        zero = replace(self.law, mean_RD=0 * self.law.mean_RD)
        return [Saturation(law).excess(*heads), Saturation(zero).excess(*Saturation(zero).step()[1])]

    def _least_excess_around(self, case: Saturation) -> float:
        """Return the least excess over the step of random weights near d heads of least risk."""
        P_HPP, Q_HPP = case.heads()
        size = float(case.w_star_D.norm())
        noise = generator(self.seed, "check").standard_normal((2, SAMPLES, *P_HPP.shape))
        noise_2BHPP = NOISE * min(size, 1 / size) * torch.from_numpy(noise)
        risk_B = case.risk.value_of_layer(P_HPP + noise_2BHPP[0], Q_HPP + noise_2BHPP[1])
        return float(risk_B.min()) - case.descent_risk

    def judge(self, weights: Weights) -> Finding:
        """Compare the exact risk of these weights with the step's, for every seed."""
        return judge_above_the_step(weights)
