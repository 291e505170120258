"""Given weights against the sets S of ahn's Theorems 3 and 4: their distance, their risk, their gradient.

A and B in the sign of eq. (11), whitened. R seeds, L layers, D covariates, V variables.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from icl.checks.ahn.support import orbits
from icl.checks.ahn.support.critical_set import (
    Point,
    as_printed,
    gradient_as_printed,
    nearest_point,
    sampled_near,
    track_starts,
    whitened,
)
from icl.checks.ahn.support.orbits import Stack
from icl.checks.ahn.support.trace_words import gradient_by_words, has_words, risk_by_words
from icl.checks.differences import DIFFERENCES, gradient_norm
from icl.checks.given_weights import (
    DISTANCE,
    EXCESS,
    LEAST_SQUARES,
    Again,
    distance_by_least_squares,
    judge_rows,
    require_family,
    require_law,
)
from icl.checks.verdict import Bound, Finding, Weights
from icl.random import generator
from icl.tasks import LinearRegressionLaw
from icl.theory.ahn.invariant_risk import InvariantRisk
from icl.theory.distance import distance_to_identity


def stacks_of(weights: Weights, theorem: str, family: str) -> list[tuple[Stack, LinearRegressionLaw]]:
    """Yield each seed's whitened A and B with its law; weights that the theorem does not speak of are
    refused."""
    require_family(weights, theorem, [family])
    law = weights.regression(theorem)
    whitened_w = law.root_RDD.mT @ law.Sigma_w_RDD @ law.root_RDD
    require_law(law, theorem, {"w ~ N(0, Sigma^-1) (task.task_covariance=inverse)": whitened_w})
    matrices = {name: matrix.detach().to(torch.float64) for name, matrix in weights.matrices.items()}
    A_RLDD = -matrices["A"] if family == "sparse_a" else matrices["A"]
    B_RLDD = matrices.get("B", A_RLDD[:, :0])
    without, laws = B_RLDD.shape[1] == 0, [law.replica(r) for r in range(len(A_RLDD))]
    stacks = [(A_LDD, None if without else B_RLDD[r]) for r, A_LDD in enumerate(A_RLDD)]
    return [(whitened(stack, law), law) for stack, law in zip(stacks, laws, strict=True)]


def judge_against_optimum(weights: Weights, seed: int, samples: int) -> Finding:
    """Compare weights of (8) with the optimum on S of Theorem 3, up to the order of the layers."""
    seeds = stacks_of(weights, "Theorem 3", "sparse_a")
    words = all(has_words(len(A), law) for (A, _), law in seeds)
    rng = generator(seed, "check")
    off_s = "exact" if words else "sampled"
    return judge_rows(
        [row_against_optimum(stack, law, seed, samples) for stack, law in seeds],
        [row_against_optimum((orbits.tilted(A), B), law, seed, samples) for (A, B), law in seeds],
        Bound(
            DISTANCE,
            f"the tolerance of Dist(Sigma^1/2 A_l Sigma^1/2, I), all layers and seeds; exact risk within "
            f"{EXCESS:.0%} of the optimum on S",
            "distance",
        ),
        *_control_of(weights),
        notes=["The gradient norm is exact where its standard error is 0."],
        kinds={
            **dict.fromkeys(("risk", "risk_excess", "risk_excess_error"), off_s),
            **dict.fromkeys(("gradient_norm", "gradient_norm_stderr"), off_s),
            "risk_on_s": "projected",
        },
        again={
            "distance": Again(LEAST_SQUARES, [_distance_by_least_squares(stack) for stack, _ in seeds], 1.0),
            "optimal_risk": Again(
                "the rational lower bound of the risk on S",
                [float(nearest_point(stack, law).risk.lower_bound()) for stack, law in seeds],
            ),
        }
        | ({"gradient_norm": _gradients_by_differences(seeds, rng)} if words else {}),
    )


def judge_against_minima(weights: Weights, starts: int, seed: int, samples: int) -> Finding:
    """Compare weights of (11) with the critical points of Theorem 4. Which local minimum is left open."""
    seeds = stacks_of(weights, "Theorem 4", "sparse_ab")
    layers = len(seeds[0][0][0])
    least = {law.context_R: least_risk(law, layers, starts, seed) for _, law in seeds}
    of_control = [((orbits.tilted(A), B), law) for (A, B), law in seeds]
    rows, control_rows = (
        [row_against_minima(stack, law, least[law.context_R], seed, samples) for stack, law in some]
        for some in (seeds, of_control)
    )
    return judge_rows(
        rows,
        control_rows,
        Bound(
            DISTANCE,
            "the tolerance of Dist(Sigma^1/2 A_l Sigma^1/2, I) and Dist(B_l, I), all layers and seeds; "
            f"exact risk of the nearest point of S within {EXCESS:.0%} of the local minimum below it",
            "distance",
        ),
        *_control_of(weights),
        notes=[
            "The risk is exact, at the nearest point of S (whitened traces). The difference of the "
            "weights' own risk from it is sampled, and has a heavy tail.",
            f"The lowest minimum is that of {starts} starts; Theorem 4 does not say that it is reached.",
        ],
        kinds={
            **dict.fromkeys(("risk", "risk_excess", "risk_excess_error"), "projected"),
            "risk_excess_over_best": "projected",
            **dict.fromkeys(("risk_shift", "risk_shift_error"), "sampled"),
            **dict.fromkeys(("gradient_norm", "gradient_norm_stderr"), "sampled"),
        },
        again={
            "distance": Again(LEAST_SQUARES, [_distance_by_least_squares(stack) for stack, _ in seeds], 1.0)
        },
    )


def _control_of(weights: Weights) -> tuple[str, str]:
    """Return what the control measures, and its column."""
    return (
        "the distance to S, or in one dimension the excess risk, of the same weights with A_0 doubled along "
        "one whitened axis",
        "distance" if weights.law.dim > 1 else "risk_excess",
    )


def row_against_optimum(stack: Stack, law: LinearRegressionLaw, seed: int, samples: int) -> dict[str, float]:
    """Theorem 3's weights against the optimum on S; exact where words give the risk off S."""
    A_LDD, point = stack[0], nearest_point(stack, law)
    on_s, optimum = point.value(), point.risk.optimum().risk
    if has_words(len(A_LDD), law):
        risk, error = float(risk_by_words(A_LDD, law.context_R[0])), 0.0
        white_LDD = gradient_by_words(A_LDD, law.context_R[0])
        gradient, stderr = float(gradient_as_printed(white_LDD, len(A_LDD), law).norm()), 0.0
    else:
        shift, error, gradient, stderr = sampled_near(stack, point, generator(seed, "eval"), samples)
        risk = on_s + shift
    return {
        "distance": _distance_to_s(stack),
        "risk_excess": risk / optimum - 1,
        "risk_excess_error": error / optimum,
        "gradient_norm": gradient,
        "gradient_norm_stderr": stderr,
        "risk": risk,
        "risk_on_s": on_s,
        "optimal_risk": optimum,
    }


def row_against_minima(
    stack: Stack, law: LinearRegressionLaw, least: float, seed: int, samples: int
) -> dict[str, float]:
    """Theorem 4's weights against the local minimum below the nearest point of S, and the least one found."""
    point = nearest_point(stack, law)
    risk = point.value()
    below = min(risk, minimum_below(point))
    shift, shift_error, gradient, stderr = sampled_near(stack, point, generator(seed, "eval"), samples)
    return {
        "distance": _distance_to_s(stack),
        "risk_excess": risk / below - 1,
        "risk_excess_error": 0.0,
        "risk_excess_over_best": risk / min(below, least) - 1,
        "risk": risk,
        "risk_shift": shift,
        "risk_shift_error": shift_error,
        "gradient_norm": gradient,
        "gradient_norm_stderr": stderr,
    }


def least_risk(law: LinearRegressionLaw, layers: int, starts: int, seed: int) -> float:
    """Least of the local minima found on S with B."""
    risk = InvariantRisk(law.dim, law.context_R[0], layers, with_b=True)
    minima = risk.minimise(generator(seed, "search"), starts, track_starts)
    return min((minimum.risk for minimum in minima), default=math.inf)


def _distance_to_s(stack: Stack) -> float:
    return float(torch.cat([distance_to_identity(M_LDD) for M_LDD in stack if M_LDD is not None]).max())


def _distance_by_least_squares(stack: Stack) -> float:
    matrices = [M_DD for M_LDD in stack if M_LDD is not None for M_DD in M_LDD]
    return float(np.max([distance_by_least_squares(M_DD) for M_DD in matrices]))


def _gradients_by_differences(
    seeds: Sequence[tuple[Stack, LinearRegressionLaw]], rng: np.random.Generator
) -> Again:
    """Return the norms of the gradients in the paper's coordinates once more: of the risk by words as a
    function of the paper's A."""
    norms, sizes = [], []
    for (white_LDD, _), law in seeds:
        root_DD, context = law.root_RDD[0], law.context_R[0]
        A_LDD = as_printed((white_LDD, None), law)[0]

        def risk(A_LDD: Tensor, root_DD: Tensor = root_DD, context: int = context) -> Tensor:
            return risk_by_words(root_DD.mT @ A_LDD @ root_DD, context)

        slope = gradient_as_printed(gradient_by_words(white_LDD, context), len(white_LDD), law)
        norms.append(gradient_norm(risk, [A_LDD], [slope], rng))
        larger = gradient_by_words(-2 * white_LDD.abs(), context)
        sizes.append(float(gradient_as_printed(larger, len(white_LDD), law).norm()))
    return Again(DIFFERENCES, norms, max(sizes))


def minimum_below(point: Point) -> float:
    """Exact risk of the local minimum below a point of S."""
    layers, risk = len(point.a_L), point.risk

    def at(theta_V: np.ndarray) -> Any:
        return risk.derivatives(theta_V[:layers].tolist(), theta_V[layers:].tolist())

    result = minimize(
        lambda theta_V: at(theta_V).value,
        np.concatenate([point.a_L, point.beta_L]),
        jac=lambda theta_V: at(theta_V).gradient_V,
        hess=lambda theta_V: at(theta_V).hessian_VV,
        method="trust-exact",
    )
    return float(result.fun)
