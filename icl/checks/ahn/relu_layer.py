"""One layer of ReLU attention at sizes D and N, x and w ~ N(0, I): its exact risk held against sampling.

A point is b, the last row of P, with A, the D x D block of Q, in Q's own sign; the last row of Q is zero.
R points, B prompts, L = 1 layer, D covariates, P = D + 1 token width.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from scipy.stats import norm
from torch import Tensor

from icl.models import Full, LinearTransformer
from icl.tasks import LinearRegressionLaw, TokenPrompt
from icl.theory.closed_forms import ReluRisk

CONFIDENCE = 0.999
CHUNK = 2_000_000  # attention scores held at a time

Point = tuple[Tensor, Tensor]  # b_P and A_DD


class Sampled(NamedTuple):
    z_R: list[float]  # of the sampled against the exact risk
    half_width: float  # relative, at the first point
    effect_of_a: float  # the most by which a prediction changes with the column a of Q


def diagonal_point(step: float, dim: int) -> Point:
    """b_0 = 0, b_1 = 1 and A = -step I."""
    b_P = torch.zeros(dim + 1, dtype=torch.float64)
    b_P[-1] = 1
    return b_P, -step * torch.eye(dim, dtype=torch.float64)


def random_point(risk: ReluRisk, rng: np.random.Generator) -> Point:
    b_P = torch.tensor(0.5 * rng.standard_normal(risk.dim + 1))
    noise_DD = rng.standard_normal((risk.dim, risk.dim)) / math.sqrt(risk.dim)
    return b_P, risk.minimiser * torch.tensor(np.eye(risk.dim) + noise_DD)


def convex_bound(risk: ReluRisk) -> float:
    """Minimum over X = b_1 A at b_0 = 0 of the quadratic that the risk is: R(0) - |R'(0)|^2 / (2 R'')."""
    steps = (-1.0, 0.0, 1.0)  # R'(0) is along I
    up, zero, down = (float(risk.value(*diagonal_point(step, risk.dim))) for step in steps)
    slope, second = (up - down) / 2, up + down - 2 * zero
    return zero - slope**2 / (2 * second)


def gradient_norm(risk: ReluRisk, b_P: Tensor, A_DD: Tensor) -> float:
    leaves = [M.clone().requires_grad_() for M in (b_P, A_DD)]
    return float(torch.cat([g.flatten() for g in torch.autograd.grad(risk.value(*leaves), leaves)]).norm())


def sampled(
    points: Sequence[Point], risk: ReluRisk, law: LinearRegressionLaw, rng: np.random.Generator, samples: int
) -> Sampled:
    """The risk at every point on the same prompts, through the token path."""
    P_RLPP, Q_RLPP = _stack(points, rng)
    no_a_RLPP = Q_RLPP.clone()
    no_a_RLPP[..., :-1, -1] = 0
    losses, effect = [], 0.0
    for prompt in _prompts(law, rng, len(points), samples):
        prediction_RB = predict(P_RLPP, Q_RLPP, prompt)
        effect = max(effect, float((prediction_RB - predict(P_RLPP, no_a_RLPP, prompt)).abs().max()))
        losses.append((prediction_RB - prompt.target_RB).square())
    loss_RB = torch.cat(losses, 1)
    error_R = loss_RB.std(1) / math.sqrt(loss_RB.shape[1])
    exact_R = torch.stack([risk.value(b_P, A_DD) for b_P, A_DD in points])
    half_width = float(norm.isf((1 - CONFIDENCE) / 2) * error_R[0] / exact_R[0])
    return Sampled(((loss_RB.mean(1) - exact_R) / error_R).tolist(), half_width, effect)


def predict(P_RLPP: Tensor, Q_RLPP: Tensor, prompt: TokenPrompt) -> Tensor:
    family = Full(P_RLPP.shape[-1] - 1, P_RLPP.shape[1])
    family.load({"P": P_RLPP, "Q": Q_RLPP})
    with torch.no_grad():
        return LinearTransformer(family, "tokens", "relu").predict(prompt)


def _stack(points: Sequence[Point], rng: np.random.Generator) -> tuple[Tensor, Tensor]:
    """Layers with these b and A; what has no effect (a, the other rows of P) is random."""
    P = len(points[0][0])
    P_RLPP, Q_RLPP = (torch.tensor(rng.standard_normal((len(points), 1, P, P))) for _ in range(2))
    Q_RLPP[..., -1, :] = 0
    for r, (b_P, A_DD) in enumerate(points):
        P_RLPP[r, 0, -1], Q_RLPP[r, 0, :-1, :-1] = b_P, A_DD
    return P_RLPP, Q_RLPP


def _prompts(
    law: LinearRegressionLaw, rng: np.random.Generator, points: int, samples: int
) -> Iterator[TokenPrompt]:
    """The same prompts for every point, a few at a time."""
    chunk = max(1, min(samples, CHUNK // (points * (law.context_R[0] + 1) ** 2)))
    for start in range(0, samples, chunk):
        drawn = law.token_prompts([rng], min(chunk, samples - start))
        context, query, target = (
            part.expand(points, *part.shape[1:])
            for part in (drawn.context_RBNP, drawn.query_RBP, drawn.target_RB)
        )
        yield TokenPrompt(context, query, target, drawn.read_out)
