"""Single heads on AR(s) tokens: their support, risk and curvature. K = s query entries, P = s + 1."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from icl.checks.lds.support.population import Population, balance
from icl.random import generator
from icl.theory.dynamical_system import Moments, coefficients, half_squared_error, parity_mask
from icl.theory.lds.value_search import search_values
from icl.theory.quadratic import HeadsOptimum, QuadraticRisk

SUPPORT = 1e-6  # of the largest entry: less is off the support, at an optimum found to rounding
WEIGHTS = 5  # digits of the weights in the record


@dataclass(frozen=True, eq=False)
class BestHeads:
    """The best heads that searches found: with any b, of pattern (13), of the other checkerboard; and two."""

    population: Population
    mask_P: Tensor  # of b in (13)
    query_mask_KP: Tensor
    free: HeadsOptimum
    of_pattern: HeadsOptimum
    other: HeadsOptimum
    two: HeadsOptimum

    @classmethod
    def search(cls, population: Population, restarts: int, seed: int) -> BestHeads:
        """Search from so many starts each."""
        window = population.law.window
        mask_P, query_mask_PP = parity_mask(window)

        def best(heads: int, free_P: Tensor | None) -> HeadsOptimum:
            return search_values(population.risk, heads, generator(seed, "search", heads), restarts, free_P)

        found = best(1, None), best(1, mask_P), best(1, ~mask_P), best(2, None)
        return cls(population, mask_P, query_mask_PP[:window], *found)

    @cached_property
    def single(self) -> HeadsOptimum:
        """The best of the three searches for one head."""
        return min((self.free, self.of_pattern, self.other), key=lambda optimum: optimum.value)

    @cached_property
    def off(self) -> float:
        """The largest entry of the best head outside (13), as a share of the largest of its matrix."""
        return off_support(*self._balance(self.single), self.mask_P, self.query_mask_KP)

    @cached_property
    def pattern(self) -> HeadsOptimum:
        """The best head of (13)."""
        return self.single if self.off <= SUPPORT else self.of_pattern

    @property
    def excess(self) -> float:
        """Return the risk of the best head of (13) less that of the best head."""
        return self.pattern.value - self.single.value

    @cached_property
    def excess_stderr(self) -> float:
        """Return the standard error of `excess`, 0 where the mean over systems is exact."""
        window = self.population.law.window
        return self.population.stderr(lambda part: risk_difference(part, self.pattern, self.single, window))

    @cached_property
    def gains(self) -> dict[str, float]:
        """Return the gain of a second head, and the rest up to the bound over any number of heads."""
        bound = self.population.risk.convex_bound().value
        return {
            "gain_of_second_head": 1 - self.two.value / self.single.value,
            "excess_over_bound": self.single.value / bound - 1,
            "two_heads_excess_over_bound": self.two.value / bound - 1,
        }

    def describe(self) -> dict[str, Any]:
        """Return risks, curvatures and weights."""
        head, head_of_pattern = self._balance(self.single), self._balance(self.pattern)
        return {
            "best_single_head": self.single.value,
            "best_of_pattern": self.pattern.value,
            "best_of_other_checkerboard": self.other.value,
            "pattern_excess_stderr": self.excess_stderr,
            "off_support": self.off,
            "two_heads": self.two.value,
            **self.gains,
            "hessian_smallest": smallest_curvatures(self.population.risk, *head),
            "W_V_last_column": round_weights(head[0]),
            "W_QK": round_weights(head[1]),
            "pattern_W_V_last_column": round_weights(head_of_pattern[0]),
            "pattern_W_QK": round_weights(head_of_pattern[1]),
            "values_of_restarts": sorted(self.free.values_of_restarts),
        }

    def _balance(self, optimum: HeadsOptimum) -> tuple[Tensor, Tensor]:
        return balance(optimum, self.population.law.window)


def risk_difference(part: Moments, one: HeadsOptimum, other: HeadsOptimum, window: int) -> float:
    """Return the difference of two heads' risks, at fixed weights."""

    def value(head: HeadsOptimum) -> float:
        return float(half_squared_error(part, coefficients(head.b_HP[0], head.a_HKP[0, :window])))

    return value(one) - value(other)


def off_support(b_P: Tensor, a_KP: Tensor, mask_P: Tensor, query_mask_KP: Tensor) -> float:
    """Return the largest entry outside (13), as a share of the largest of its matrix."""
    return max(
        float((entries.abs() * ~mask).max() / entries.abs().max())
        for entries, mask in ((b_P, mask_P), (a_KP, query_mask_KP))
    )


def smallest_curvatures(risk: QuadraticRisk, b_P: Tensor, a_KP: Tensor, count: int = 4) -> list[float]:
    """Return the smallest eigenvalues in (b, a) as shares of the largest; one is 0, the scale between b and
    a."""
    P, K = len(b_P), len(a_KP)

    def value(flat: Tensor) -> Tensor:
        rows_KP = torch.cat([flat[P:].view(K, P), torch.zeros(1, P, dtype=torch.float64)])
        return risk.value_of_heads(flat[None, :P], rows_KP[None])

    at = torch.cat([b_P, a_KP.flatten()])
    values = np.linalg.eigvalsh(torch.autograd.functional.hessian(value, at).numpy())
    return [float(entry) for entry in values[:count] / values[-1]]


def round_weights(matrix: Tensor) -> list[Any]:
    """Return the weights to so many digits, 0 off their support."""
    scaled = torch.where(matrix.abs() > SUPPORT * matrix.abs().max(), matrix, 0.0)
    return torch.round(scaled, decimals=WEIGHTS).tolist()
