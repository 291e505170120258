"""A test of convexity at two points: halfway between them the risk may not exceed their mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor


def violation(risk: Callable[..., Tensor], first: Sequence[Tensor], second: Sequence[Tensor]) -> Tensor:
    """risk at the midpoint minus the mean of the risks; positive only where `risk` is not convex."""
    middle = [(a + b) / 2 for a, b in zip(first, second, strict=True)]
    return risk(*middle) - (risk(*first) + risk(*second)) / 2
