"""lds, Lemma 4.1: with weights of pattern (13) both sides of (11) share a checkerboard, (12).

At entry (m, n) of matrix j, m, n from 0, both are zero where j + m + n + s + 1 is odd. Tested for random
weights of the pattern, exactly in settings (a) and (b), where a zero is an odd moment (Lemma D.3), and in
(c), (d) on average over drawn systems, within an interval.

The lemma narrows a search; it does not say that (11) has a solution of the pattern. (11) asks the gradient
in X_k to vanish, which is sufficient: for s >= 2 one head cannot in general, and at its best only the
gradients in b and a_k vanish. Both are measured at the best head of the pattern.

S pairs of token entries, K = s query entries, P = s + 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from icl.checks.lds.support import evidence
from icl.checks.lds.support.checkerboard import Checkerboard, forced_zeros, gradients_at_best_head
from icl.checks.lds.support.population import Population, require_systems
from icl.checks.lds.support.sequences import Windows
from icl.checks.numbers import exact, finding, of_kind, searched
from icl.checks.settings import integer
from icl.checks.verdict import Control, Finding
from icl.random import generator
from icl.theory.dynamical_system import coefficients, parity_mask

DRAWS = 8  # of weights of the pattern, and of others


@dataclass(eq=False)
class Lemma41(Windows):
    """Settings: setting, window s, length T, dim, seed, samples (drawn systems in c and d)."""

    reference = "Lemma 4.1, eqs. (11) to (13); Appendix D.3"
    claim = (
        "If the weights have pattern (13), both sides of (11) vanish at the entries of the checkerboard (12)."
    )

    window: int = integer(3, 1, 5, "the searches take minutes")
    samples: int = 4000

    def __post_init__(self) -> None:
        super().__post_init__()
        require_systems(self.samples, self.length)

    def measure(self) -> Finding:
        population = Population(self.law, self.samples, self.seed)
        sides = Checkerboard(population)
        bound, source = sides.bound(DRAWS)
        left = sides.left([self._head(True, draw) for draw in range(DRAWS)])
        control = sides.left([self._head(False, draw) for draw in range(DRAWS)])
        gradients = gradients_at_best_head(population, self.seed)
        of_weights = "tried" if population.exact else "sampled"
        return finding(
            [
                of_kind(of_weights, **{f"left_{sides.unit}": left})
                .means(f"largest entry of the left side of (11) on the checkerboard, {sides.scale}")
                .at_most(bound, source),
                of_kind(population.kind, **{f"right_{sides.unit}": sides.right()})
                .means(f"largest entry of the right side of (11) on the checkerboard, {sides.scale}")
                .compared_by("grid_error", "moments by Gauss rules over tokens")
                .at_most(bound, source),
                evidence.grid_error(self.law, self.seed),
                exact(forced_zeros=int(forced_zeros(self.window).sum())).means(
                    "number of entries of the checkerboard"
                ),
                searched(**gradients).means(
                    gradient_in_X_at_best_head="norm of the gradient in X_k at the best head of (13), "
                    "over that at 0",
                    gradient_in_weights_at_best_head="norm of the gradient in b and a_k there, over that "
                    "in X_k at 0",
                ),
            ],
            Control(
                f"the largest entry of the left side for {DRAWS} random weights without the pattern, "
                f"{sides.scale}",
                control,
                control > bound,
            ),
            notes=[population.note],
            remarks=_remarks(gradients["gradient_in_X_at_best_head"]),
        )

    def _head(self, pattern: bool, step: int) -> Tensor:
        """Draw x_KS of random weights."""
        rng, P = generator(self.seed, "task" if pattern else "control", 2 + step), self.window + 1
        b_P = torch.from_numpy(rng.standard_normal(P))
        a_KP = torch.from_numpy(rng.standard_normal((self.window, P)))
        if pattern:
            mask_P, query_PP = parity_mask(self.window)
            b_P, a_KP = b_P * mask_P, a_KP * query_PP[: self.window]
        return coefficients(b_P, a_KP)


def _remarks(in_X: float) -> list[str]:
    remarks = [
        "Y_0 Y_0^T in (10) to (12) means the sum over the context without the column of the query, as in "
        "(38). The sum over p in (46) must start at 1, not 0. (36) and (10) omit the 1/2 of (9).",
        "(51) prints b = (b_1, 0, b_2, ...); the third entry is b_3.",
    ]
    if in_X > 1e-6:
        remarks.append(
            "(11) is sufficient and not necessary: at the best head of the pattern the gradients in b and "
            f"a_k vanish, but the gradient in X_k does not ({in_X:.2g} of its norm at 0)."
        )
    return remarks
