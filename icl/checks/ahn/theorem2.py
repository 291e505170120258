"""ahn, Theorem 2: two layers of eq. (8), x and w ~ N(0, I): diagonal A minimise the loss over symmetric A.

The proof in two steps, both measured: the risk does not change under A_l -> U^T A_l U, so A_0 may be taken
diagonal; and it is quadratic and convex in A_1, so dropping A_1's off-diagonal part (the mean of S A_1 S over
sign matrices S) cannot raise it. From any symmetric pair this leads to a diagonal one that is no worse. The
risk itself, by pairings and as a polynomial, is compared with prompts drawn as tokens.

L = 2 layers, D covariates, N = `context` tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from icl.checks.ahn.support.critical_point import RATIONAL_BOUND
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
        "For two layers of eq. (8) and isotropic x and w, the least population risk over symmetric A_0 "
        "and A_1 is attained by diagonal matrices."
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
                .means("least risk found over diagonal A minus the least found over symmetric A")
                .at_most(accuracy, ACCURACY)
                .holds_only_if(bool(np.isfinite(accuracy))),
                tried(largest_rise=rise)
                .means("largest increase of the risk by the two steps of the proof, relative to its terms")
                .at_most(layers.rounding, ROUNDED),
                exact(scalar_risk_by_pairings_minus_polynomial=abs(scalar.risk - by_pairings))
                .means("difference of the two formulas of the risk at the best multiples of I")
                .compared_by("scalar_risk_by_pairings_minus_polynomial", "pairings, and polynomial on S")
                .at_most(accuracy, ACCURACY),
                *on_tokens,
                exact(best_scalar=scalar.risk)
                .means("least risk over multiples of I")
                .compared_by("scalar_risk_by_pairings_minus_polynomial", "the risk by pairings"),
                exact(scalars=scalar.a_L.tolist())
                .means("best multiples of I, by layer")
                .in_tests(RATIONAL_BOUND),
                exact(rise_rounding=layers.rounding)
                .means("rounding error of the relative increase")
                .by_definition(),
                searched(
                    best_diagonal=diagonal.risk,
                    best_symmetric=symmetric.risk,
                    best_unrestricted=free.risk,
                    scalar_minus_diagonal=scalar.risk - diagonal.risk,
                    symmetric_minus_unrestricted=symmetric.risk - free.risk,
                    spread_of_starts=max(optimum.spread for optimum in (diagonal, symmetric, free)),
                ).means(
                    best_diagonal="least risk found over diagonal A",
                    best_symmetric="least risk found over symmetric A",
                    best_unrestricted="least risk found over all A",
                    scalar_minus_diagonal="least risk over multiples of I minus the least found over "
                    "diagonal A",
                    symmetric_minus_unrestricted="least risk found over symmetric A minus the least found "
                    "over all A",
                    spread_of_starts="largest difference of the risks at which the starts end",
                ),
            ],
            self._control(),
            notes=[
                f"The diagonal, symmetric and unrestricted minima are each the lowest of {self.starts} "
                "random starts and of starts at the optima of smaller families, without a proof; the "
                f"minimum over multiples of I is exact. The two steps of the proof are measured on {PAIRS} "
                "symmetric pairs and at the optimum found.",
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
            "the same difference at Sigma = (I + 1 1^T)/2, where the steps of the proof raise the risk by "
            f"up to {rise:.1%} of its terms",
            gap,
            gap > diagonal.accuracy + symmetric.accuracy,
        )


def _remarks(scalar: float, diagonal: Optimum, symmetric: Optimum, free: Optimum) -> list[str]:
    remarks = []
    if scalar - diagonal.risk <= diagonal.accuracy:
        remarks.append(
            "The best diagonal matrices found are no better than multiples of I: the step sizes that the "
            "paper calls coordinate-wise are the same for all coordinates."
        )
    lower = symmetric.risk - free.risk > symmetric.accuracy + free.accuracy
    than = (
        "Unrestricted A have a lower risk than"
        if lower
        else "No unrestricted A was found with a lower risk than"
    )
    return [*remarks, f"{than} symmetric A."]
