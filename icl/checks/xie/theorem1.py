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
import torch
from torch import Tensor

from icl.checks.given_weights import EXCESS, about_the_theorem
from icl.checks.sequential import KINDS, Comparison
from icl.checks.settings import affordable_starts, in_range
from icl.checks.verdict import Bound, Control, Finding, Weights, at_most, combine, decide
from icl.checks.xie.support import tokens
from icl.checks.xie.support.initial_guess import ROUNDING_OF_EXCESSES as OF_EXCESSES
from icl.checks.xie.support.initial_guess import ROUNDING_OF_RISKS, WithGuess, worst
from icl.checks.xie.support.saturation import BLUR, Saturation, given_heads, with_guess
from icl.checks.xie.support.tokens import GuessLayer, Quantity
from icl.errors import InputError
from icl.random import generator
from icl.theory.xie.initial_guess import fewest_heads, gap, gd_risk, lost_slope

MAX_DIM = 14
TOO_LARGE = "alternating least squares with nearly dim heads takes minutes"
ITERATIONS = 200  # of each restart: enough at context 10; each found value is an upper bound in any case
SOURCE = ROUNDING_OF_RISKS
OF_CERTIFICATES = (
    "rounding of the two least E(1 - <G, Y>)^2: 2^-52 times the number and size of their terms, plus their "
    "residuals squared over the least eigenvalue"
)
GUESSES = ("", "_linear_guess", "_bias")  # y_q = 0, y_q = <v, x_q>, y_q = <v, x_q> + b


@dataclass(eq=False)
class Theorem1(WithGuess):
    """Settings: sizes, prior mean w* (or its norm), guess vector v (or its norm) and bias b of the other two
    cases, restarts for each number of heads, their seed."""

    restarts: int = 2

    reference = "Theorem 1; Appendix A.1"
    claim = "The least ICL risk of multi-head LSA is the same for every number of heads H >= d + 1."
    claim_of_weights = "These weights have the least ICL risk of all numbers of heads."

    def __post_init__(self) -> None:
        in_range("check.dim", self.dim, 1, MAX_DIM, TOO_LARGE)
        super().__post_init__()
        self.linear = with_guess(self.law, self.guess_D)
        self.biased = with_guess(self.law, self.guess_D, self.guess_bias)
        affordable_starts("check.restarts", self.restarts, 1)

    def measure(self) -> Finding:
        cases = [Saturation(law) for law in (self.law, self.linear, self.biased)]
        zero, bound = cases[0], cases[0].least.value
        found = self._excess_by_heads(zero)
        excesses = np.minimum.accumulate([excess for excess, _ in found])  # a further head may stay unused
        lost = [_certified(zero, heads) for heads in range(1, len(found) + 1)]
        # no more than what is found, of which |x - x_best|_M^2 says more than a difference of risks
        undercut = worst([(c - e, r) for c, e, (_, r) in zip(lost, excesses, found, strict=True)])
        on_tokens = self._on_tokens()
        off = worst(self._certificates(zero))
        beyond = [_largest_beyond(case) for case in cases]
        errors = [abs(case.least.value - _predicted(case)) for case in cases]
        wrong = worst([(error, case.rounding) for error, case in zip(errors, cases, strict=True)])
        verdict, shown = combine(
            [
                *(
                    at_most(f"largest_difference_beyond_d{name}", *difference, OF_EXCESSES)
                    for name, difference in zip(GUESSES, beyond, strict=True)
                ),
                at_most("least_risk_error", *wrong, SOURCE),
                at_most("largest_certificate_excess", *undercut, OF_EXCESSES),
                at_most("largest_certificate_error", *off, OF_CERTIFICATES),
                *tokens.conditions(on_tokens),
            ]
        )
        roundings = [rounding for _, rounding in found]
        saturates_at = 1 + int((excesses > roundings).sum())
        others = [self._saturates_at(case) for case in cases[1:]]
        enough = fewest_heads(zero.w_star_D, zero.guess_D, zero.bias)
        nothing = zero.risk.constant - bound, zero.rounding
        fewer, of_fewer = (excesses[enough - 2], found[enough - 2][1]) if enough > 1 else nothing
        certified = _certified(zero, enough - 1)
        seen = [case.blurred > case.rounding for case in cases]
        seen += [decide(*case.constructed(self.dim + 1, 1 + BLUR)) == "fails" for case in cases]
        return Finding(
            verdict,
            {
                **{f"least_risk{name}": case.least.value for name, case in zip(GUESSES, cases, strict=True)},
                "least_risk_error": wrong[0],
                "risk_by_heads": [bound + excess for excess in excesses],
                "excess_by_heads": excesses.tolist(),
                "heads": list(range(1, len(found) + 1)),
                "certified_excess_by_heads": lost,
                "certified_lower_bound_by_heads": [bound + certified for certified in lost],
                **{
                    f"largest_difference_beyond_d{name}": difference
                    for name, (difference, _) in zip(GUESSES, beyond, strict=True)
                },
                "largest_certificate_excess": undercut[0],
                "largest_certificate_error": off[0],
                "saturates_at": saturates_at,
                "saturates_at_linear_guess": others[0],
                "saturates_at_bias": others[1],
                "gd_risk": zero.descent_risk,
                "risk_of_no_heads": zero.risk.constant,
                **tokens.measured(on_tokens, "risks"),
            },
            shown,
            Control(
                f"best risk found with H = {enough - 1} minus the bound; certified to be at least "
                f"{certified:.4g} for all weights. Rejected with d + 1 heads whose keys, and "
                "risks whose terms, are off by 1e-10",
                float(fewer),
                certified > 0 and fewer > of_fewer and all(seen),
            ),
            self._notes(),
            self._remarks([saturates_at, *others], fewer, certified),
            kinds={"*": "exact", "risk_by_heads": "searched", **KINDS},
        )

    def judge(self, weights: Weights) -> Finding:
        """Do these weights, of at least as many heads as saturate, attain the saturated risk?"""
        laws, P_RHPP, Q_RHPP = given_heads(weights, "Theorem 1")
        heads = P_RHPP.shape[1]
        enough = max(fewest_heads(law.w_star_D, law.guess_D, law.bias) for law in laws)
        if heads < enough:
            raise InputError(
                f"check.weights: the least risk is the same from {enough} heads on, these have {heads}"
            )
        seeds = list(zip(laws, P_RHPP, Q_RHPP, strict=True))
        rows = [(law, *law.at(P_HPP, Q_HPP)) for law, P_HPP, Q_HPP in seeds]
        excesses = [risk / law.least.value - 1 for law, risk, _ in rows]
        halved = [law.at(P_HPP, Q_HPP / 2)[0] / law.least.value - 1 for law, P_HPP, Q_HPP in seeds]
        measured = {
            "risk_excess": float(np.max(excesses)),
            "gradient_norm": float(np.max([norm for *_, norm in rows])),
            "risk_excess_by_seed": excesses,
            "risk_by_seed": [risk for _, risk, _ in rows],
            "bound_by_seed": [law.least.value for law in laws],
            "gd_risk_by_seed": [law.descent_risk for law in laws],
            "excess_over_gd_by_seed": [risk - law.descent_risk for law, risk, _ in rows],
            "least_excess_over_gd_by_seed": [law.gap for law in laws],
            "gradient_norm_by_seed": [norm for *_, norm in rows],
            "least_excess_with_fewer_heads_by_seed": [
                _certified(law, enough - 1) / law.least.value for law in laws
            ],
            "heads": heads,
        }
        bound = Bound(
            EXCESS,
            f"exact risk within {EXCESS:.0%} of the least risk over all numbers of heads",
            "risk_excess",
        )
        near = [decide(excess, EXCESS) for excess in excesses]
        verdict, elsewhere = about_the_theorem(near, measured, bound)
        return Finding(
            verdict,
            measured,
            bound,
            Control(
                "risk excess of the same weights with Q halved",
                float(np.min(halved)),
                all(decide(excess, EXCESS) == "fails" for excess in halved),
            ),
            elsewhere,
            kinds={"*": "exact"},
        )

    def _excess_by_heads(self, case: Saturation) -> list[tuple[float, float]]:
        """Return the excess of H = 1 .. d + 3 heads, and its rounding. Best found below d, each from
        the one before; by construction from d on."""
        rng = generator(self.seed, "search")
        start_HP, found = _row_of_descent(case)[None], []
        for heads in range(1, self.dim):
            best = case.risk.best_with_heads(heads, rng, self.restarts, ITERATIONS, starts=[start_HP])
            found.append(case.risk.excess(torch.einsum("hp,hkr->kpr", best.b_HP, best.a_HKP)))
            start_HP = torch.cat([best.b_HP, torch.from_numpy(rng.standard_normal((1, self.dim + 1)))])
        return found + [case.constructed(heads) for heads in range(self.dim, self.dim + 4)]

    def _certificates(self, case: Saturation) -> list[tuple[float, float]]:
        """Return the distance of each certified loss from its constrained minimum, for each unit of
        |w* - v|^2 + b^2; and its rounding."""
        (all_of_Y, rounding), found = case.constant(), []
        for heads in range(1, self.dim + 1):
            value, its = case.constant(self.dim - heads)
            slope = lost_slope(self.dim, self.context, heads)
            found.append((abs(value - all_of_Y - slope), rounding + its))
        return found

    def _on_tokens(self) -> Comparison:
        """From prompts drawn as tokens: the least risk at y_q = 0, and 5/4 of it at y_q = <v, x_q> + b."""
        zero, biased = (Saturation(tokens.cut(law)) for law in (self.law, self.biased))
        beside = biased.beside(generator(self.seed, "check", 1))
        at_beside = float(biased.risk.value_of_layer(*beside))
        quantities = [
            Quantity([GuessLayer(zero.law, zero.heads())], zero.least.value, zero.rounding),
            Quantity([GuessLayer(biased.law, beside)], at_beside, 2 * biased.rounding),
        ]
        return tokens.hold_to_tokens(quantities, generator(self.seed, "check"))

    def _saturates_at(self, case: Saturation) -> int:
        """The smallest H found to attain the bound, from d + 1 downwards to where none can."""
        heads, rng = self.dim + 1, generator(self.seed, "search", 1)
        while heads > 1 and not _certified(case, heads - 1):
            if decide(*self._best(case, heads - 1, rng)) == "fails":
                break
            heads -= 1
        return heads

    def _best(self, case: Saturation, heads: int, rng: np.random.Generator) -> tuple[float, float]:
        if heads == self.dim:
            return case.constructed(heads)
        start_HP = torch.from_numpy(rng.standard_normal((heads, self.dim + 1)))
        start_HP[0] = _row_of_descent(case)
        best = case.risk.best_with_heads(heads, rng, self.restarts, ITERATIONS, starts=[start_HP])
        return case.risk.excess(torch.einsum("hp,hkr->kpr", best.b_HP, best.a_HKP))

    def _notes(self) -> list[str]:
        v, b = float(self.biased.guess_RD[0].norm()), self.biased.guess_bias
        return [
            f"least_risk is at y_q = 0, least_risk_linear_guess at y_q = <v, x_q>, |v| = {v:.4g}, and "
            f"least_risk_bias at y_q = <v, x_q> + b, b = {b:.4g}: the theorem is measured at each.",
            f"Below H = d each risk is the best of {self.restarts} restarts and one continued from H - 1 "
            f"heads, of up to {ITERATIONS} rounds: an upper bound. certified_lower_bound_by_heads holds for "
            "all weights: it is the least risk over X_k that vanish where fewer heads force them to.",
            f"{tokens.note(self.law)} risks_on_tokens: of d heads at y_q = 0, the least; and of d + 1 at "
            "y_q = <v, x_q> + b, the last one random, of a size that adds a quarter to the least.",
        ]

    def _remarks(self, saturate_at: list[int], fewer: float, certified: float) -> list[str]:
        remarks = []
        if max(saturate_at) <= self.dim:
            remarks.append(
                f"Not tight: H = {max(saturate_at)} is enough for each of the three guesses (d = "
                f"{self.dim}). The optimal X_k have no entry at (y, y), so A.1's head for that row, b = "
                "e_(d+1), has nothing to do."
            )
        if self.dim > 1 and saturate_at[0] == self.dim:
            remarks.append(
                f"d - 1 heads do not suffice: at y_q = 0 the best found is {fewer:.6g} above the bound, and "
                f"no weights get closer than {certified:.6g}. With v = w* and b = 0 one head is enough."
            )
        return remarks


def _largest_beyond(case: Saturation) -> tuple[float, float]:
    """Excess over the least risk of d + 1, d + 2 and d + 3 heads."""
    return worst([case.constructed(case.dim + more) for more in (1, 2, 3)])


def _predicted(case: Saturation) -> float:
    """The step's risk and the gap, by their closed forms."""
    return gd_risk(case.dim, case.context) + gap(case.w_star_D, case.guess_D, case.bias, case.context)


def _certified(case: Saturation, heads: int) -> float:
    """What H heads lose at least; without heads the prediction is y_q itself."""
    if heads == 0:
        return case.risk.constant - case.least.value
    return lost_slope(case.dim, case.context, heads) * case.guess_error


def _row_of_descent(case: Saturation) -> Tensor:
    """The last row of P in eq. (7), which alone saturates at v = w*, b = 0."""
    return torch.cat([-case.w_star_D, case.w_star_D.new_ones(1)])
