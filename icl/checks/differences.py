"""Gradients of polynomials by differences of their values alone: a second route, without autograd."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

DIFFERENCES = "differences of the risk's values, without autograd"
DIRECTIONS = 3  # random ones, orthogonal to the gradient
STENCIL = ((1, 45), (2, -9), (3, 1))  # f'(0) = sum of weight (f(k h) - f(-k h)) / 60 h, exact to degree 6


def gradient_norm(
    value: Callable[..., Tensor],
    weights: Sequence[Tensor],
    gradients: Sequence[Tensor],
    rng: np.random.Generator,
    step: float | None = None,
) -> float:
    """Return the norm of the gradient of a polynomial of degree 6 at most, given what is thought to be its
    gradient: the root of the squared derivative along that, plus those along random directions orthogonal
    to it, times the number of such directions per random one. It is the given one's norm only if nothing
    is missing."""
    flat = torch.cat([gradient.detach().flatten() for gradient in gradients])
    point = torch.cat([weight.detach().flatten() for weight in weights])
    sizes, step = [weight.numel() for weight in weights], step or max(float(point.norm()), 1.0) / 4
    count = min(DIRECTIONS, len(flat) - 1)
    drawn = torch.from_numpy(rng.standard_normal((1 + count, len(flat)))).to(flat)
    if flat.norm():
        drawn[0] = flat
    basis = torch.linalg.qr(drawn.T).Q.T

    def at(moved: Tensor) -> float:
        parts = moved.split(sizes)
        return float(
            value(*(part.reshape(weight.shape) for part, weight in zip(parts, weights, strict=True)))
        )

    def derivative(direction: Tensor) -> float:
        pairs = [
            weight * (at(point + k * step * direction) - at(point - k * step * direction))
            for k, weight in STENCIL
        ]
        return sum(pairs) / (60 * step)

    along, *across = map(derivative, basis)
    missing = sum(slope**2 for slope in across) * (len(flat) - 1) / max(count, 1)
    return float((along**2 + missing) ** 0.5)
