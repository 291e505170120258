"""Given single layers, of linear attention and of ReLU, against the minimisers of ahn's Theorems 1 and 5.

R seeds, D covariates, P = D + 1 token width. b = (b_0, b_1) is the last row of P, A the D x D block of Q.
"""

from __future__ import annotations

import torch
from torch import Tensor

from icl.checks.ahn.support.linear_layer import LinearLayer, layer_of, symmetric_products
from icl.checks.ahn.support.relu_layer import gradient_norm
from icl.checks.given_weights import (
    DISTANCE,
    EXCESS,
    FAMILIES,
    judge_rows,
    require_family,
    require_law,
    single_layer,
)
from icl.checks.settings import in_range
from icl.checks.verdict import Bound, Finding, Weights
from icl.errors import InputError
from icl.theory.ahn.relu_risk import ReluRisk
from icl.theory.closed_forms import theorem1_preconditioner
from icl.theory.distance import distance_to_identity


def judge_layers(weights: Weights, dims: tuple[int, int, str]) -> Finding:
    """Compare layers of linear attention with eq. (6), up to P <- gamma P, Q <- Q / gamma."""
    law = weights.regression("Theorem 1")
    require_family(weights, "Theorem 1", list(FAMILIES))
    require_law(law, "Theorem 1", {"w ~ N(0, I)": law.Sigma_w_RDD})
    in_range("check.weights: their dimension", law.dim, *dims)
    P_RPP, Q_RPP = single_layer(weights, "Theorem 1")
    layers = [LinearLayer(*problem) for problem in zip(law.Sigma_RDD, law.context_R, strict=True)]
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
    )


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
    )


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
