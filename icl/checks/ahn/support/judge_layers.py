"""Given single layers, of linear attention and of ReLU, against the minimisers of ahn's Theorems 1 and 5.

R seeds, D covariates, P = D + 1 token width. b = (b_0, b_1) is the last row of P, A the D x D block of Q.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from icl.checks.ahn.support.linear_layer import (
    LinearLayer,
    layer_of,
    predictions_on_a_basis,
    symmetric_products,
)
from icl.checks.ahn.support.relu_layer import (
    RELU_QUADRATURE,
    by_differences,
    convex_bound,
    gradient_norm,
    risk_by_quadrature,
)
from icl.checks.differences import DIFFERENCES
from icl.checks.given_weights import (
    DISTANCE,
    EXCESS,
    FAMILIES,
    LEAST_SQUARES,
    Again,
    distance_by_least_squares,
    judge_rows,
    require_family,
    require_law,
    single_layer,
)
from icl.checks.settings import in_range
from icl.checks.task_rule import BY_TASKS, risk_by_tasks
from icl.checks.verdict import Bound, Finding, Weights
from icl.errors import InputError
from icl.random import generator
from icl.theory.ahn.relu_risk import ReluRisk
from icl.theory.closed_forms import theorem1_preconditioner, theorem1_risk
from icl.theory.distance import distance_to_identity


def judge_layers(weights: Weights, dims: tuple[int, int, str]) -> Finding:
    """Compare layers of linear attention with eq. (6), up to P <- gamma P, Q <- Q / gamma."""
    law = weights.regression("Theorem 1")
    require_family(weights, "Theorem 1", list(FAMILIES))
    require_law(law, "Theorem 1", {"w ~ N(0, I)": law.Sigma_w_RDD})
    in_range("check.weights: their dimension", law.dim, *dims)
    P_RPP, Q_RPP = single_layer(weights, "Theorem 1")
    layers = [LinearLayer(*problem) for problem in zip(law.Sigma_RDD, law.context_R, strict=True)]
    rng, seeds = generator(0, "check"), range(len(layers))
    risks = [risk_by_tasks(law.replica(r), P_RPP[r, None], Q_RPP[r, None]) for r in seeds]
    least = [float(theorem1_risk(layer.Sigma, layer.context)) for layer in layers]
    drawn_2RPP = torch.from_numpy(rng.standard_normal((2, *P_RPP.shape)))
    drawn_2RPP *= max(float(P_RPP.norm()), float(Q_RPP.norm())) / drawn_2RPP.norm()
    return judge_rows(
        [linear_row(*seed) for seed in zip(layers, P_RPP, Q_RPP, strict=True)],
        [linear_row(*seed) for seed in zip(layers, P_RPP, Q_RPP / 2, strict=True)],
        Bound(
            DISTANCE,
            "the tolerance of ahn's figures, of |X - X of (6)| / |X of (6)|; and the exact risk "
            f"within {EXCESS:.0%} of the optimum",
            "distance",
        ),
        "the distance of the same weights with Q halved",
        again={
            "distance": Again(
                "predictions on a basis of Gram matrices",
                [_distance_by_predictions(layers[r], P_RPP[r], Q_RPP[r]) for r in seeds],
                1.0,
            ),
            "risk_excess": Again(
                "a rule over tasks, and the closed form of the least risk",
                [risk / its - 1 for risk, its in zip(risks, least, strict=True)],
                max(layer.unit * law.dim / its for layer, its in zip(layers, least, strict=True)),
            ),
            "gradient_norm": Again(
                DIFFERENCES,
                [layers[r].norm_by_differences(P_RPP[r], Q_RPP[r], rng) for r in seeds],
                max(layers[r].at(*drawn_2RPP[:, r])[1] for r in seeds),
            ),
            "risk": Again(BY_TASKS, risks, max(layer.unit * law.dim for layer in layers)),
            "optimal_risk": Again("the closed form of the least risk", least),
        },
    )


def _distance_by_predictions(layer: LinearLayer, P_PP: Tensor, Q_PP: Tensor) -> float:
    """Return the distance from eq. (6) of what two layers predict."""
    stated_SD = predictions_on_a_basis(*layer_of(theorem1_preconditioner(layer.Sigma, layer.context)))
    return float((predictions_on_a_basis(P_PP, Q_PP) - stated_SD).norm() / stated_SD.norm())


def linear_row(layer: LinearLayer, P_PP: Tensor, Q_PP: Tensor) -> dict[str, float]:
    """Compare one seed's weights with eq. (6)."""
    risk, gradient_norm = layer.at(P_PP, Q_PP)
    X_DPP = symmetric_products(P_PP, Q_PP)
    claim_DPP = symmetric_products(*layer_of(theorem1_preconditioner(layer.Sigma, layer.context)))
    return {
        "distance": float((X_DPP - claim_DPP).norm() / claim_DPP.norm()),
        "risk_excess": risk / layer.least_risk - 1,
        "gradient_norm": gradient_norm,
        "risk": risk,
        "optimal_risk": layer.least_risk,
    }


def judge_relu_layers(weights: Weights) -> Finding:
    """Compare layers of ReLU attention with Theorem 5's minimiser, up to P <- gamma P, Q <- Q / gamma."""
    law = weights.regression("Theorem 5")
    require_family(weights, "Theorem 5", list(FAMILIES), "relu")
    require_law(law, "Theorem 5", {"x ~ N(0, I)": law.Sigma_RDD, "w ~ N(0, I)": law.Sigma_w_RDD})
    P_RPP, Q_RPP = single_layer(weights, "Theorem 5")
    if bool(Q_RPP[:, -1].any()):
        raise InputError("check.weights: the last row of Q is not zero, as Theorem 5 assumes")
    risks = [ReluRisk(law.dim, context) for context in law.context_R]
    seeds = list(zip(risks, P_RPP[:, -1], Q_RPP[:, :-1, :-1], strict=True))
    return judge_rows(
        [relu_row(*seed) for seed in seeds],
        [relu_row(risk, b_P, 0.5 * A_DD) for risk, b_P, A_DD in seeds],
        Bound(
            EXCESS,
            f"the tolerance of the exact risk, all seeds; Dist(A, I) and |b_0| / |b| at most {DISTANCE}",
            "risk_excess",
        ),
        "the excess risk of the same weights with A halved",
        "risk_excess",
        again=_relu_again(seeds),
    )


def _relu_again(seeds: Sequence[tuple[ReluRisk, Tensor, Tensor]]) -> dict[str, Again]:
    rng, dim = generator(0, "check"), seeds[0][0].dim
    risks = [risk_by_quadrature(*seed) for seed in seeds]
    least = [convex_bound(risk) for risk, *_ in seeds]
    off = [max(distance_by_least_squares(A), float(b[:-1].norm() / b.norm())) for _, b, A in seeds]
    sizes = [gradient_norm(risk, b.abs(), A.abs()) for risk, b, A in seeds]
    return {
        "distance": Again(LEAST_SQUARES, off, 1.0),
        "risk_excess": Again(
            f"{RELU_QUADRATURE}, and the least value of the convex form",
            [risk / its - 1 for risk, its in zip(risks, least, strict=True)],
            dim / min(least),
        ),
        "gradient_norm": Again(DIFFERENCES, [by_differences(*seed, rng) for seed in seeds], max(dim, *sizes)),
        "risk": Again(RELU_QUADRATURE, risks, dim),
        "optimal_risk": Again("the least value of the convex form", least, dim),
    }


def relu_row(risk: ReluRisk, b_P: Tensor, A_DD: Tensor) -> dict[str, float]:
    """Compare one seed's weights with the minimum."""
    value = float(risk.value(b_P, A_DD))
    off_identity = torch.stack([distance_to_identity(A_DD), b_P[:-1].norm() / b_P.norm()])
    return {
        "distance": float(off_identity.max()),
        "risk_excess": value / risk.minimum - 1,
        "gradient_norm": gradient_norm(risk, b_P, A_DD),
        "risk": value,
        "optimal_risk": risk.minimum,
    }
