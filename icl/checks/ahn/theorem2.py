"""ahn, Theorem 2: two layers of eq. (8), x and w ~ N(0, I): diagonal A minimise the loss over symmetric A.

The proof in two steps, both measured: the risk does not change under A_l -> U^T A_l U, so A_0 may be taken
diagonal; and it is quadratic and convex in A_1, so dropping A_1's off-diagonal part (the mean of S A_1 S over
sign matrices S) cannot raise it. From any symmetric pair this leads to a diagonal one that is no worse. The
risk itself, by pairings and as a polynomial, is held to prompts drawn as tokens.

L = 2 layers, D covariates, N = `context` tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from icl.checks.ahn.support.search import Optimum
from icl.checks.ahn.support.two_layers import ACCURACY, PAIRS, ROUNDED, TwoLayers, numbers_on_tokens
from icl.checks.numbers import exact, finding, searched, tried
from icl.checks.settings import integer, search_starts, validate
from icl.checks.verdict import Control, Finding

CONTROL_STARTS = 2


@dataclass(eq=False)
class Theorem2:
    """Settings: dimension (at least 2), context length, random starts per family, their seed."""

    # every 1 x 1 matrix is diagonal; at 12 10 s, at 16 half a minute and 1.7 GB
    dim: int = integer(5, 2, 12, "the Hessian in 2 dim^2 variables takes over 1 GB")
    context: int = integer(20, 1, 100_000, "the risk falls as 1/context^2 into the rounding of its terms")
    starts: int = search_starts(8)
    seed: int = integer(0, 0)

    reference = "Theorem 2"
    claim = (
        "For two layers of eq. (8) and isotropic x and w, diagonal A minimise the loss over all symmetric A."
    )

    def __post_init__(self) -> None:
        validate(self)

    def measure(self) -> Finding:
        layers = TwoLayers(self.dim, self.context, self.seed)
        scalar, by_pairings = layers.scalar, float(layers.risk(layers.scalar_LDD))
        diagonal, symmetric = layers.best_diagonal_and_symmetric(self.starts)
        free = layers.best("free", [symmetric.A_LDD], self.starts)
        rise, accuracy = layers.largest_rise(symmetric.A_LDD), diagonal.accuracy + symmetric.accuracy
        on_tokens, cut = numbers_on_tokens(self.dim, self.context, self.seed)
        return finding(
            [
                searched(diagonal_minus_symmetric=diagonal.risk - symmetric.risk)
                .at_most(accuracy, ACCURACY)
                .holds_only_if(bool(np.isfinite(accuracy))),
                tried(largest_rise=rise).at_most(layers.rounding, ROUNDED),
                exact(scalar_risk_by_pairings_minus_polynomial=abs(scalar.risk - by_pairings)).at_most(
                    accuracy, ACCURACY
                ),
                *on_tokens,
                exact(best_scalar=scalar.risk, scalars=scalar.a_L.tolist(), rise_rounding=layers.rounding),
                searched(
                    best_diagonal=diagonal.risk,
                    best_symmetric=symmetric.risk,
                    best_unrestricted=free.risk,
                    scalar_minus_diagonal=scalar.risk - diagonal.risk,
                    symmetric_minus_unrestricted=symmetric.risk - free.risk,
                    spread_of_starts=max(optimum.spread for optimum in (diagonal, symmetric, free)),
                ),
            ],
            self._control(),
            notes=[
                "Diagonal, symmetric and unrestricted values are each the "
                f"best of {self.starts} random starts and the optima of smaller families, no proof; "
                "scalar multiples of I are "
                f"minimised exactly. The proof's two steps are measured on {PAIRS} symmetric pairs and at "
                "the optimum found: largest_rise is what they add to the risk at most, as a share of its "
                "terms.",
                *cut,
            ],
            remarks=_remarks(scalar.risk, diagonal, symmetric, free),
        )

    def _control(self) -> Control:
        """Violate a hypothesis: correlated covariates, for which the basis is no longer arbitrary."""
        Sigma = (torch.eye(self.dim, dtype=torch.float64) + 1) / 2
        correlated = TwoLayers(self.dim, self.context, self.seed, Sigma)
        diagonal, symmetric = correlated.best_diagonal_and_symmetric(CONTROL_STARTS)
        gap, rise = diagonal.risk - symmetric.risk, correlated.largest_rise(symmetric.A_LDD)
        return Control(
            "best diagonal minus best symmetric risk at Sigma = (I + 1 1^T)/2, where the proof's steps "
            f"raise it by up to {rise:.1%} of its terms",
            gap,
            gap > diagonal.accuracy + symmetric.accuracy,
        )


def _remarks(scalar: float, diagonal: Optimum, symmetric: Optimum, free: Optimum) -> list[str]:
    remarks = []
    if scalar - diagonal.risk <= diagonal.accuracy:
        remarks.append(
            "The best diagonal matrices found are no better than multiples of I: the stepsizes the text "
            "calls coordinate-wise are the same for all coordinates."
        )
    lower = symmetric.risk - free.risk > symmetric.accuracy + free.accuracy
    without = "Unrestricted A do better than" if lower else "No unrestricted A found does better than"
    return [*remarks, f"{without} symmetric ones."]
