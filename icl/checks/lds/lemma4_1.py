"""lds, Lemma 4.1: with weights of pattern (13) both sides of (11) share a checkerboard, (12).

At entry (m, n) of matrix j, m, n from 0, both are zero where j + m + n + s + 1 is odd. Held to for random
weights of the pattern, exactly in settings (a) and (b), where a zero is an odd moment (Lemma D.3), and in
(c), (d) on average over drawn systems, within an interval.

The lemma narrows a search; it does not say that (11) has a solution of the pattern. (11) asks the gradient
in X_k to vanish, which is sufficient: for s >= 2 one head cannot in general, and at its best only the
gradients in b and a_k vanish. Both are measured at the best head of the pattern.

S pairs of token entries, K = s query entries, P = s + 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor

from icl.checks.lds.support import evidence
from icl.checks.lds.support.population import (
    LEVEL,
    Population,
    enough,
    in_standard_errors,
    mean_over,
    of_mean_square_one,
    quantile,
)
from icl.checks.lds.support.sequences import Windows
from icl.checks.settings import in_range
from icl.checks.verdict import Control, Finding, at_most, combine
from icl.random import generator
from icl.theory.dynamical_system import Covariances, Moments, coefficients, moments, pairs, parity_mask
from icl.theory.lds.value_search import search_values
from icl.theory.quadratic import EPSILON

MAX_WINDOW = 5
DRAWS = 8  # of weights of the pattern, and of others


@dataclass(eq=False)
class Lemma41(Windows):
    """Settings: setting, window s, length T, dim, seed, samples (drawn systems in c and d)."""

    reference = "Lemma 4.1, eqs. (11) to (13); Appendix D.3"
    claim = "With weights of pattern (13) both sides of (11) vanish on the same checkerboard, (12)."

    samples: int = 4000

    def __post_init__(self) -> None:
        in_range("check.window", self.window, 1, MAX_WINDOW, "the searches take minutes")
        super().__post_init__()
        enough(self.samples, self.length)

    def measure(self) -> Finding:
        self.population = population = Population(self.law, self.samples, self.seed)
        pattern = [self._head(True, draw) for draw in range(DRAWS)]
        name, bound, source = self._yardstick(len(pattern))
        left, right = self._left(pattern), self._right()
        control = self._left([self._head(False, draw) for draw in range(DRAWS)])
        grid, by_grid = evidence.grid_error(self.law, self.seed)
        measured = {
            f"left_{name}": left,
            f"right_{name}": right,
            "forced_zeros": int(forced_zeros(self.window).sum()),
            "grid_error": grid,
            **self._at_the_best_head(),
        }
        verdict, decisive = combine(
            [
                at_most(f"left_{name}", left, bound, source),
                at_most(f"right_{name}", right, bound, source),
                by_grid,
            ]
        )
        return Finding(
            verdict,
            measured,
            decisive,
            Control(
                f"largest left {name} of {DRAWS} draws of weights without the pattern",
                control,
                control > bound,
            ),
            [population.note],
            self._remarks(measured),
            kinds={
                "*": population.kind,
                "left_share": "tried",  # at random weights
                "gradient_*": "searched",
                "grid_error": "tried",
                "forced_zeros": "exact",
            },
        )

    def _head(self, pattern: bool, step: int) -> Tensor:
        """x_KS of random weights."""
        rng, P = generator(self.seed, "task" if pattern else "control", 2 + step), self.window + 1
        b_P = torch.from_numpy(rng.standard_normal(P))
        a_KP = torch.from_numpy(rng.standard_normal((self.window, P)))
        if pattern:
            mask_P, query_PP = parity_mask(self.window)
            b_P, a_KP = b_P * mask_P, a_KP * query_PP[: self.window]
        return coefficients(b_P, a_KP)

    def _yardstick(self, heads: int) -> tuple[str, float, str]:
        if self.population.exact:
            return "share", 64 * EPSILON, "rounding: 64 * 2^-52; shares of the sizes of an entry's terms"
        entries = int(forced_zeros(self.window).sum()) * heads
        return "z", quantile(entries), LEVEL

    def _left(self, heads: list[Tensor]) -> float:
        """The largest entry that (12) has as zero, of the left side of (11)."""
        return max(self._largest(partial(_left_side, x_KS), x_KS) for x_KS in heads)

    def _right(self) -> float:
        return self._largest(lambda part: part.linear_KS, None)

    def _largest(self, side: Callable[[Moments], Tensor], x_KS: Tensor | None) -> float:
        """As a share of its terms' sizes where exact, else in standard errors over the parts."""
        zero_KS, s = forced_zeros(self.window), self.window
        if not bool(zero_KS.any()):
            return 0.0
        if self.population.exact:
            (part,) = self.population.parts
            sizes = moments(Covariances(part.weight_Q.abs(), part.covariance_QTT.abs()), s)
            size_KS = sizes.linear_KS if x_KS is None else torch.einsum(
                "kslr,lr->ks", sizes.form_KSKS, x_KS.abs()
            )  # fmt: skip
            return float((side(self.population.moments).abs() / size_KS)[zero_KS].max())
        parts_CE = torch.stack([side(part)[zero_KS] for part in self._scaled_parts])
        return float(in_standard_errors(parts_CE).abs().max())

    @cached_property
    def _scaled_parts(self) -> list[Moments]:
        scaled = [mean_over(of_mean_square_one(part.covariance_QTT)) for part in self.population.parts]
        return [moments(part, self.window) for part in scaled]

    def _at_the_best_head(self) -> dict[str, float]:
        """Norms of the gradient in X and in (b, a) at the best head of the pattern, over that at zero."""
        risk, mask_P = self.population.risk, parity_mask(self.window)[0]
        best = search_values(risk, 1, generator(self.seed, "search"), 4, mask_P)
        b_HP, a_HKP = best.b_HP.clone().requires_grad_(), best.a_HKP.clone().requires_grad_()
        risk.value_of_heads(b_HP, a_HKP).backward()
        X_KPP = torch.einsum("hp,hkr->kpr", best.b_HP, best.a_HKP)
        at_zero = float(risk.gradient(torch.zeros_like(X_KPP)).norm())
        assert b_HP.grad is not None and a_HKP.grad is not None
        in_weights = torch.cat([b_HP.grad.flatten(), a_HKP.grad.flatten()]).norm()
        return {
            "gradient_in_X_at_best_head": float(risk.gradient(X_KPP).norm()) / at_zero,
            "gradient_in_weights_at_best_head": float(in_weights) / at_zero,
        }  # fmt: skip

    def _remarks(self, measured: dict[str, Any]) -> list[str]:
        remarks = [
            "Y_0 Y_0^T in (10) to (12) stands for the sum over the context, without the query's column: "
            "(38). (46) sums p from 0; it is from 1. (36) and (10) drop the 1/2 of (9).",
            "(51) prints b = (b_1, 0, b_2, ...): its third entry is b_3.",
        ]
        if measured["gradient_in_X_at_best_head"] > 1e-6:
            remarks.append(
                "(11) is sufficient, not necessary: at the best head of the pattern the gradients in b and "
                "a_k vanish, that in X_k does not "
                f"({measured['gradient_in_X_at_best_head']:.2g} of its norm at 0)."
            )
        return remarks


def _left_side(x_KS: Tensor, part: Moments) -> Tensor:
    return torch.einsum("kslr,lr->ks", part.form_KSKS, x_KS)


def forced_zeros(window: int) -> Tensor:
    """(K, S): where both sides of (11) are odd moments; j from 1, m and n from 0."""
    m_S, n_S = pairs(window)
    j_K1 = torch.arange(1, window + 1)[:, None]
    return (j_K1 + m_S + n_S + window + 1) % 2 == 1
