"""Loss (5) on one batch as ahn draws it, at a point of S and at one near it where the batch loss is lower.

Rare prompts carry the risk of Theorem 4's stacks, and a batch does not see them.

V variables (a, b), R = 1 replica, B prompts, L layers, D covariates, P = D + 1 token width.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize

from icl.checks.ahn.support.critical_set import Point, as_printed
from icl.checks.numbers import Numbers, exact, sampled
from icl.models.batched import batch_last
from icl.models.gram import sparse_forward
from icl.progress import track
from icl.tasks import GramPrompt

BATCH = 20_000  # prompts of the paper's batch
SEARCH_STEPS = 20  # of L-BFGS on the batch loss
NEARBY = 0.2  # no scalar moves further in that search

Array = NDArray[np.float64]


def against_the_risk(point: Point, prompt: GramPrompt) -> list[Numbers]:
    """Batch loss and exact risk, here and nearby."""
    start_V = np.concatenate([point.a_L, point.b_L])
    box = [tuple(sorted((value * (1 - NEARBY), value * (1 + NEARBY)))) for value in start_V]
    steps = track(range(SEARCH_STEPS), "search on the batch loss", SEARCH_STEPS)
    near = minimize(
        lambda theta_V: _loss(theta_V, point, prompt),
        start_V,
        jac=True,
        method="L-BFGS-B",
        bounds=box,
        callback=lambda _: next(steps, None),
        options={"maxiter": SEARCH_STEPS},
    )
    here, there = _loss(start_V, point, prompt)[0], float(near.fun)
    near_risk = _moved(point, near.x).value()
    distance = float(np.linalg.norm(near.x - start_V) / np.linalg.norm(start_V))
    return [
        sampled(batch_loss_20000=here, risk_over_batch_loss=point.value() / here).means(
            batch_loss_20000="loss on one batch of 20000 prompts at the minimum on S",
            risk_over_batch_loss="exact risk over that batch loss",
        ),
        sampled(nearby_batch_loss_20000=there, nearby_risk_over_batch_loss=near_risk / there).means(
            nearby_batch_loss_20000="loss on the same batch at a nearby point of S where the batch loss is "
            "lower",
            nearby_risk_over_batch_loss="exact risk over batch loss at the nearby point",
        ),
        exact(nearby_risk=near_risk, nearby_distance=distance)
        .means(
            nearby_risk="exact risk at the nearby point",
            nearby_distance="relative distance of the nearby point from the minimum",
        )
        .by_definition()
        .also_by("quadrature", nearby_risk=_moved(point, near.x).on_the_rule()[0]),  # of the point found
    ]


def _loss(theta_V: Array, point: Point, prompt: GramPrompt) -> tuple[float, Array]:
    """Return the loss and its gradient in (a, b)."""
    theta = torch.tensor(theta_V, requires_grad=True)
    L, ones = len(point.a_L), _moved(point, np.ones_like(theta_V))
    unit_A_LDD, unit_B_LDD = as_printed(ones.stack, point.law)
    A_LDD = theta[:L, None, None] * unit_A_LDD
    B_RLDD = None if unit_B_LDD is None else (theta[L:, None, None] * unit_B_LDD)[None]
    gram_RPPB, query_RPB = batch_last(prompt.gram_RBPP), batch_last(prompt.query_RBP)
    last_RB = sparse_forward(A_LDD[None], B_RLDD, gram_RPPB, query_RPB)
    value = (prompt.read_out * last_RB - prompt.target_RB).square().mean()
    (slope,) = torch.autograd.grad(value, theta)
    return float(value.detach()), slope.numpy()


def _moved(point: Point, theta_V: Array) -> Point:
    return replace(point, a_L=theta_V[: len(point.a_L)], b_L=theta_V[len(point.a_L) :])
