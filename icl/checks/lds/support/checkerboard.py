"""The entries of (11) that (12) has as zero, exactly or on average over systems.

S pairs of token entries, K = s query entries.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import torch
from torch import Tensor

from icl.checks.lds.support.population import (
    LEVEL,
    Population,
    mean_over,
    quantile,
    scale_to_mean_square_one,
    z_of_parts,
)
from icl.random import generator
from icl.theory.dynamical_system import Covariances, Moments, moments, pairs, parity_mask
from icl.theory.lds.value_search import search_values
from icl.theory.quadratic import EPSILON


class Checkerboard:
    """The largest of those entries of either side, as a share of its terms' sizes where the mean over systems
    is exact, else in standard errors over the parts."""

    def __init__(self, population: Population) -> None:
        self.population, self.window = population, population.law.window
        self.zero_KS = forced_zeros(self.window)

    @property
    def unit(self) -> str:
        """`share` or `z`."""
        return "share" if self.population.exact else "z"

    @property
    def scale(self) -> str:
        """The unit in words."""
        return "relative to its terms" if self.population.exact else "in standard errors"

    def bound(self, heads: int) -> tuple[float, str]:
        """Return the bound for so many heads, and its source."""
        if self.population.exact:
            return 64 * EPSILON, "rounding: 64 * 2^-52; shares of the sizes of an entry's terms"
        return quantile(int(self.zero_KS.sum()) * heads), LEVEL

    def left(self, heads: list[Tensor]) -> float:
        """Return the largest entry of the left side for heads x_KS."""

        def largest(x_KS: Tensor) -> float:
            return self._largest(lambda part: torch.einsum("kslr,lr->ks", part.form_KSKS, x_KS), x_KS)

        return max(map(largest, heads))

    def right(self) -> float:
        """Return the largest entry of the right side."""
        return self._largest(lambda part: part.linear_KS, None)

    def _largest(self, side: Callable[[Moments], Tensor], x_KS: Tensor | None) -> float:
        if not bool(self.zero_KS.any()):
            return 0.0
        if not self.population.exact:
            parts_CE = torch.stack([side(part)[self.zero_KS] for part in self._scaled_parts])
            return float(z_of_parts(parts_CE).abs().max())
        (part,) = self.population.parts
        sizes = moments(Covariances(part.weight_Q.abs(), part.covariance_QTT.abs()), self.window)
        size_KS = sizes.linear_KS
        if x_KS is not None:
            size_KS = torch.einsum("kslr,lr->ks", sizes.form_KSKS, x_KS.abs())
        return float((side(self.population.moments).abs() / size_KS)[self.zero_KS].max())

    @cached_property
    def _scaled_parts(self) -> list[Moments]:
        scaled = [scale_to_mean_square_one(part.covariance_QTT) for part in self.population.parts]
        return [moments(mean_over(part), self.window) for part in scaled]


def forced_zeros(window: int) -> Tensor:
    """Return (K, S): where both sides of (11) are odd moments; j from 1, m and n from 0."""
    m_S, n_S = pairs(window)
    j_K1 = torch.arange(1, window + 1)[:, None]
    return (j_K1 + m_S + n_S + window + 1) % 2 == 1


def gradients_at_best_head(population: Population, seed: int) -> dict[str, float]:
    """Return norms of the gradient in X and in (b, a) at the best head of the pattern, over that at zero."""
    risk, mask_P = population.risk, parity_mask(population.law.window)[0]
    best = search_values(risk, 1, generator(seed, "search"), 4, mask_P)
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
