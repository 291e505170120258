"""Searches for the best A = a I + K, K antisymmetric, and its comparison with the best multiple of I.

In whitened coordinates, where every K is a direct sum of blocks b_j J up to a rotation. At d = 2 the risk is
exact; beyond, a search on weighted draws of G is followed by other draws on which nothing was searched.

J draws or nodes, D covariates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from icl.checks.verdict import QUANTILE
from icl.random import generator
from icl.tasks.tilted import draw_tilted, inflations_for
from icl.theory.looped.equal_steps import EqualSteps, antisymmetric
from icl.theory.looped.plane import PlaneRisk
from icl.theory.looped.weighted import Array, WeightedRisk

SEARCH_DRAWS = 2000
NO_TURN_EXACT = 1e-6
NO_TURN = 0.02  # of b over a: what is nearer to 0 the draws of a search cannot tell from it
STARTS = (0.1, 0.35, 0.7)  # b over a
DRAWS = 2_000_000  # held out, times d^2: numbers of an array


@dataclass(frozen=True, eq=False)
class Rotation:
    """The best matrix found: a, b_j, its risk and what it gains, as a share of the best multiple's risk.
    `half_width` of the gain's 99.9 % interval is 0 where both risks are exact."""

    a: float
    b: Array
    risk: float
    gain: float
    half_width: float
    A_DD: Array

    @property
    def stderr(self) -> float:
        return self.half_width / abs(QUANTILE)


def weighted_draws(dim: int, context: int, layers: int, count: int, seed: int, step: int) -> WeightedRisk:
    """Return draws of G that see the tail of a risk of degree 2 L."""
    rng = generator(seed, "search", step)
    G_JDD, weight_J = draw_tilted(rng, context, dim, count, inflations_for(2 * layers, context, dim))
    return WeightedRisk(G_JDD, weight_J / count, layers)


def best_rotation(steps: EqualSteps, seed: int, draws: int = DRAWS) -> Rotation:
    """Return the best of descents that begin turned by several angles."""
    d, n, L, count = steps.dim, steps.context, steps.layers, draws // steps.dim**2
    plane = d == 2
    searched = PlaneRisk(n, L).rule if plane else weighted_draws(d, n, L, SEARCH_DRAWS, seed, 0)
    theta = _descend(searched, steps.best) if d > 1 else np.array([steps.best])
    if np.abs(theta[1:]).max(initial=0) < (NO_TURN_EXACT if plane else NO_TURN) * theta[0]:
        theta = np.array([steps.best, *np.zeros(d // 2)])  # the search came back to the multiples of I
    A_DD = matrix(theta, d)
    if plane or d == 1:
        risk = searched.value(A_DD) if theta[1:].any() else steps.least_risk
        gain, half_width = 1 - risk / steps.least_risk, 0.0
    else:
        gain, half_width = held_out_gain(A_DD, steps, weighted_draws(d, n, L, count, seed, 1))
        risk = steps.least_risk * (1 - gain)
    return Rotation(float(theta[0]), theta[1:], risk, gain, half_width, A_DD)


def held_out_gain(A_DD: Array, steps: EqualSteps, held_out: WeightedRisk) -> tuple[float, float]:
    """Return the mean of 1 - f(A) / f(a I) over the draws held out, and half of its interval.

    The same draws' f(c I) at a few c, and their weights, have means that are known exactly: control variates,
    whose coefficients in one half of the draws are fitted to the other.
    """
    at = np.array([1.0, np.trace(A_DD) / len(A_DD) / steps.best, 1.1, 1.25]) * steps.best
    means_C = np.array([steps.risk(c) for c in at] + [1.0])
    count, identity_DD = len(held_out.weight_J), np.eye(len(A_DD))
    known = [held_out.terms(c * identity_DD) for c in at]
    known_JC = np.stack([*known, held_out.weight_J], 1) * count / means_C - 1
    lower_J = (known[0] - held_out.terms(A_DD)) * count / steps.least_risk
    centred_J, rest_J = lower_J - lower_J.mean(), np.empty(count)
    halves = slice(None, count // 2), slice(count // 2, None)
    for one, other in (halves, halves[::-1]):
        slopes_C = np.linalg.lstsq(known_JC[other], centred_J[other], rcond=None)[0]
        rest_J[one] = lower_J[one] - known_JC[one] @ slopes_C
    return float(rest_J.mean()), float(abs(QUANTILE) * rest_J.std() / count**0.5)


def matrix(theta: Array, dim: int) -> Array:
    """Return a I + K."""
    return theta[0] * np.eye(dim) + antisymmetric(dim, theta[1:])


def _descend(risk: WeightedRisk, scalar: float) -> Array:
    """Minimise log f over (a, b_1, ...)."""
    dim = risk.G_JDD.shape[1]
    rows = 2 * np.arange(dim // 2)

    def log_risk(theta: Array) -> tuple[float, Array]:
        value, slope_DD = risk.with_gradient(matrix(theta, dim))
        along_b = slope_DD[rows + 1, rows] - slope_DD[rows, rows + 1]
        return float(np.log(value)), np.array([np.trace(slope_DD), *along_b]) / value

    ends = []
    for turn in STARTS[: 3 if dim == 2 else 1]:
        start = np.array([scalar, *np.full(dim // 2, turn * scalar)])
        options = {"maxiter": 200, "ftol": 1e-15 if dim == 2 else 1e-9, "gtol": 1e-10}
        ends.append(minimize(log_risk, start, jac=True, method="L-BFGS-B", options=options))
    best = min(ends, key=lambda end: end.fun).x
    best[1:] = np.sort(np.abs(best[1:]))[::-1]  # a rotation of the coordinates makes every b_j positive
    return best
