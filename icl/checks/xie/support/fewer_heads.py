"""The least ICL risk found with H = 1, 2, .. heads, and what fewer heads lose for certain.

H heads, D covariates, C = `context` tokens, P = K = D + 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from icl.checks.sequential import Comparison
from icl.checks.xie.support import tokens
from icl.checks.xie.support.initial_guess import worst
from icl.checks.xie.support.saturation import Saturation
from icl.checks.xie.support.tokens import GuessLayer, Quantity
from icl.random import generator
from icl.tasks import LinearRegressionLaw
from icl.theory.xie.initial_guess import gap, gd_risk, lost_slope
from icl.verdicts import decide

ITERATIONS = 200  # of each restart: enough at context 10; each found value is an upper bound in any case


@dataclass(frozen=True)
class HeadSearch:
    """Alternating least squares over the weights of fewer heads, best of `restarts`."""

    restarts: int
    seed: int

    def excess_by_heads(self, case: Saturation) -> list[tuple[float, float]]:
        """Return the excess of H = 1 .. d + 3 heads, and its rounding. Best found below d, each from
        the one before; by construction from d on."""
        rng = generator(self.seed, "search")
        start_HP, excesses = _row_of_descent(case)[None], []
        for heads in range(1, case.dim):
            best = case.risk.best_with_heads(heads, rng, self.restarts, ITERATIONS, starts=[start_HP])
            excesses.append(case.risk.excess(torch.einsum("hp,hkr->kpr", best.b_HP, best.a_HKP)))
            start_HP = torch.cat([best.b_HP, torch.from_numpy(rng.standard_normal((1, case.dim + 1)))])
        return excesses + [case.constructed(heads) for heads in range(case.dim, case.dim + 4)]

    def saturates_at(self, case: Saturation) -> int:
        """Return the smallest H found to attain the bound, from d + 1 downwards to where none can."""
        heads, rng = case.dim + 1, generator(self.seed, "search", 1)
        while heads > 1 and not certified_excess(case, heads - 1):
            if decide(*self._best(case, heads - 1, rng)) == "fails":
                break
            heads -= 1
        return heads

    def _best(self, case: Saturation, heads: int, rng: np.random.Generator) -> tuple[float, float]:
        if heads == case.dim:
            return case.constructed(heads)
        start_HP = torch.from_numpy(rng.standard_normal((heads, case.dim + 1)))
        start_HP[0] = _row_of_descent(case)
        best = case.risk.best_with_heads(heads, rng, self.restarts, ITERATIONS, starts=[start_HP])
        return case.risk.excess(torch.einsum("hp,hkr->kpr", best.b_HP, best.a_HKP))


def certificates(case: Saturation, context: int) -> list[tuple[float, float]]:
    """Return the distance of each certified loss from its constrained minimum, for each unit of
    |w* - v|^2 + b^2; and its rounding."""
    (all_of_Y, rounding), errors = case.constant(), []
    for heads in range(1, case.dim + 1):
        value, its = case.constant(case.dim - heads)
        slope = lost_slope(case.dim, context, heads)
        errors.append((abs(value - all_of_Y - slope), rounding + its))
    return errors


def risks_on_tokens(zero: LinearRegressionLaw, biased: LinearRegressionLaw, seed: int) -> Comparison:
    """Compare the least risk at y_q = 0, and 5/4 of it at y_q = <v, x_q> + b, with prompts drawn."""
    at_zero, at_bias = (Saturation(tokens.cut(law)) for law in (zero, biased))
    beside = at_bias.beside(generator(seed, "check", 1))
    risk_beside = float(at_bias.risk.value_of_layer(*beside))
    quantities = [
        Quantity([GuessLayer(at_zero.law, at_zero.heads())], at_zero.least.value, at_zero.rounding),
        Quantity([GuessLayer(at_bias.law, beside)], risk_beside, 2 * at_bias.rounding),
    ]
    return tokens.compare_with_tokens(quantities, generator(seed, "check"))


def largest_beyond(case: Saturation) -> tuple[float, float]:
    """Excess over the least risk of d + 1, d + 2 and d + 3 heads."""
    return worst([case.constructed(case.dim + more) for more in (1, 2, 3)])


def beyond_by_risks(case: Saturation) -> float:
    """Return the largest difference of the risk of d + 1 heads that A.1 constructs from the least risk."""
    return float(case.risk.value(case.tuple_of_heads(case.dim + 1))) - case.least.value


def predicted_risk(case: Saturation) -> float:
    """Return the step's risk and the gap, by their closed forms."""
    return gd_risk(case.dim, case.context) + gap(case.w_star_D, case.guess_D, case.bias, case.context)


def certified_excess(case: Saturation, heads: int) -> float:
    """Return what H heads lose at least; without heads the prediction is y_q itself."""
    if heads == 0:
        return case.risk.constant - case.least.value
    return lost_slope(case.dim, case.context, heads) * case.guess_error


def _row_of_descent(case: Saturation) -> Tensor:
    """Return the last row of P in eq. (7), which alone saturates at v = w*, b = 0."""
    return torch.cat([-case.w_star_D, case.w_star_D.new_ones(1)])
