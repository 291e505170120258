"""xie, Theorem 1: the least ICL risk of multi-head LSA is the same for all H >= d + 1, any guess y_q.

Heads enter through X_k = sym(sum_h b_h a_hk^T), b_h the last row of P_h, a_hk column k of Q_h. Over free X_k
the risk is a convex form: its minimum bounds every H from below, and A.1's d + 1 heads (b_h = e_h, a_hk row h
of X_k) attain it. Measured besides: the smallest H that does, for y_q = 0, for y_q = <v, x_q> and for
y_q = <v, x_q> + b. Fewer heads: alternating least squares, best of K restarts, and a certified lower bound.

H heads, D covariates, C = `context` tokens, P = K = D + 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from icl.checks.numbers import exact, finding, searched
from icl.checks.settings import integer, search_starts
from icl.checks.verdict import Control, Finding, Weights
from icl.checks.xie.support import tokens
from icl.checks.xie.support.fewer_heads import (
    ITERATIONS,
    HeadSearch,
    beyond_by_risks,
    certificates,
    certified_excess,
    largest_beyond,
    predicted_risk,
    risks_on_tokens,
)
from icl.checks.xie.support.initial_guess import ROUNDING_OF_EXCESSES as OF_EXCESSES
from icl.checks.xie.support.initial_guess import ROUNDING_OF_RISKS, WithGuess, worst
from icl.checks.xie.support.judge_heads import judge_saturated
from icl.checks.xie.support.saturation import BLUR, Saturation, with_guess
from icl.theory.xie.initial_guess import fewest_heads, gd_risk
from icl.verdicts import decide

OF_CERTIFICATES = (
    "rounding of the two least E(1 - <G, Y>)^2: 2^-52 times the number and size of their terms, plus their "
    "residuals squared over the least eigenvalue"
)
AT_GUESS = {"": "y_q = 0", "_linear_guess": "y_q = <v, x_q>", "_bias": "y_q = <v, x_q> + b"}
GUESSES = tuple(AT_GUESS)


@dataclass(eq=False)
class Theorem1(WithGuess):
    """Settings: sizes, prior mean w* (or its norm), guess vector v (or its norm) and bias b of the other two
    cases, restarts for each number of heads, their seed."""

    dim: int = integer(10, 1, 14, "alternating least squares with nearly dim heads takes minutes")
    restarts: int = search_starts(2)

    reference = "Theorem 1; Appendix A.1"
    claim = "The least risk of multi-head LSA is the same for every number of heads H >= d + 1."
    claim_of_weights = "The risk at these weights is the least risk over all numbers of heads."

    def __post_init__(self) -> None:
        super().__post_init__()
        self.linear = with_guess(self.law, self.guess_D)
        self.biased = with_guess(self.law, self.guess_D, self.guess_bias)

    def measure(self) -> Finding:
        cases = [Saturation(law) for law in (self.law, self.linear, self.biased)]
        zero, bound, search = cases[0], cases[0].least.value, HeadSearch(self.restarts, self.seed)
        by_heads = search.excess_by_heads(zero)
        roundings = [rounding for _, rounding in by_heads]
        excesses = np.minimum.accumulate([excess for excess, _ in by_heads])  # a further head may stay unused
        lost = [certified_excess(zero, heads) for heads in range(1, len(by_heads) + 1)]
        # no more than what is found, of which |x - x_best|_M^2 says more than a difference of risks
        undercut = worst([(c - e, r) for c, e, r in zip(lost, excesses, roundings, strict=True)])
        off = worst(certificates(zero, self.context))
        errors = [(abs(case.least.value - predicted_risk(case)), case.rounding) for case in cases]
        wrong = worst(errors)
        saturates_at = 1 + int((excesses > roundings).sum())
        others = [search.saturates_at(case) for case in cases[1:]]
        enough = fewest_heads(zero.w_star_D, zero.guess_D, zero.bias)
        nothing = zero.risk.constant - bound, zero.rounding
        fewer, of_fewer = (excesses[enough - 2], roundings[enough - 2]) if enough > 1 else nothing
        certified = certified_excess(zero, enough - 1)
        seen = [case.blurred > case.rounding for case in cases]
        seen += [decide(*case.constructed(self.dim + 1, 1 + BLUR)) == "fails" for case in cases]
        return finding(
            [
                *(
                    exact(**{f"largest_difference_beyond_d{name}": difference})
                    .means(
                        "largest excess of d + 1, d + 2 and d + 3 heads over the least risk, "
                        f"{AT_GUESS[name]}"
                    )
                    .also_by(
                        "difference of the risks",
                        **{f"largest_difference_beyond_d{name}": beyond_by_risks(case)},
                        size=case.risk.constant,
                    )
                    .at_most(rounding, OF_EXCESSES)
                    for name, case, (difference, rounding) in zip(
                        GUESSES, cases, map(largest_beyond, cases), strict=True
                    )
                ),
                exact(least_risk_error=wrong[0])
                .means("largest difference of the least risks from their closed form")
                .compared_by("least_risk_error", "exact moments of the prompts, and closed form")
                .at_most(wrong[1], ROUNDING_OF_RISKS),
                exact(largest_certificate_excess=undercut[0])
                .means("amount by which the certified lower bound exceeds the least risk found")
                .at_most(undercut[1], OF_EXCESSES),
                exact(largest_certificate_error=off[0])
                .means("error of the certificates against their closed form")
                .compared_by("largest_certificate_error", "least squares under constraints, and closed form")
                .at_most(off[1], OF_CERTIFICATES),
                *tokens.numbers(risks_on_tokens(self.law, self.biased, self.seed), "risks"),
                exact(
                    **{
                        f"least_risk{name}": case.least.value
                        for name, case in zip(GUESSES, cases, strict=True)
                    }
                )
                .means(
                    **{
                        f"least_risk{name}": f"least risk over any heads, {at}"
                        for name, at in AT_GUESS.items()
                    }
                )
                .compared_by("least_risk_error", "its closed form"),
                searched(risk_by_heads=[bound + excess for excess in excesses]).means(
                    "least risk found, by number of heads"
                ),
                exact(heads=list(range(1, len(by_heads) + 1))).means("numbers of heads").by_definition(),
                exact(
                    certified_excess_by_heads=lost,
                    certified_lower_bound_by_heads=[bound + certified for certified in lost],
                )
                .means(
                    certified_excess_by_heads="certified lower bound of that excess for all weights, by "
                    "number of heads",
                    certified_lower_bound_by_heads="certified lower bound of the risk for all weights, by "
                    "number of heads",
                )
                .compared_by("largest_certificate_error", "least squares under constraints"),
                exact(gd_risk=zero.descent_risk, risk_of_no_heads=zero.risk.constant)
                .means(
                    gd_risk="risk of one gradient step from w* with the best step size",
                    risk_of_no_heads="risk of the guess alone",
                )
                .also_by(
                    "closed forms",
                    gd_risk=gd_risk(zero.dim, zero.context),
                    risk_of_no_heads=zero.dim + float(zero.w_star_D.square().sum()),
                    size=zero.risk.constant,
                ),
                exact(
                    excess_by_heads=excesses.tolist(),
                    saturates_at=saturates_at,
                    saturates_at_linear_guess=others[0],
                    saturates_at_bias=others[1],
                ).means(
                    excess_by_heads="excess of the least risk found over the least risk of any heads, by "
                    "number of heads",
                    saturates_at="smallest number of heads with the least risk, y_q = 0",
                    saturates_at_linear_guess="smallest number of heads with the least risk, y_q = <v, x_q>",
                    saturates_at_bias="smallest number of heads with the least risk, y_q = <v, x_q> + b",
                ),
            ],
            Control(
                f"the excess of H = {enough - 1} heads over the least risk, certified to be at least "
                f"{certified:.4g} for all weights; errors of 1e-10 in the keys of d + 1 heads and in the "
                "terms of the risks are rejected, too",
                float(fewer),
                certified > 0 and fewer > of_fewer and all(seen),
            ),
            notes=self._notes(),
            remarks=self._remarks([saturates_at, *others], fewer, certified),
        )

    def judge(self, weights: Weights) -> Finding:
        """Compare weights of at least as many heads as saturate with the saturated risk."""
        return judge_saturated(weights)

    def _notes(self) -> list[str]:
        v, b = float(self.biased.guess_RD[0].norm()), self.biased.guess_bias
        return [
            f"The theorem is measured at three guesses: y_q = 0, y_q = <v, x_q> with |v| = {v:.4g}, and "
            f"y_q = <v, x_q> + b with b = {b:.4g}.",
            f"For H < d each risk is the best of {self.restarts} restarts and of one start that continues "
            f"from H - 1 heads, with up to {ITERATIONS} rounds, and therefore an upper bound. The "
            "certified lower bound holds for all weights: it is the least risk over X_k with the zeros "
            "that H heads force.",
            f"{tokens.note(self.law)} The risks there are that of the best d heads at y_q = 0, and that of "
            "d + 1 heads at y_q = <v, x_q> + b, where the last head is random and adds a quarter to the "
            "least risk.",
        ]

    def _remarks(self, saturate_at: list[int], fewer: float, certified: float) -> list[str]:
        remarks = []
        if max(saturate_at) <= self.dim:
            remarks.append(
                f"The theorem is not tight: H = {max(saturate_at)} heads suffice for each of the three "
                f"guesses (d = {self.dim}). The optimal X_k have no entry at (y, y), so the head of A.1 "
                "for that row, b = e_(d+1), is not needed."
            )
        if self.dim > 1 and saturate_at[0] == self.dim:
            remarks.append(
                f"d - 1 heads do not suffice: at y_q = 0 the best weights found are {fewer:.6g} above the "
                f"least risk, and all weights are at least {certified:.6g} above it. With v = w* and b = 0 "
                "one head suffices."
            )
        return remarks
