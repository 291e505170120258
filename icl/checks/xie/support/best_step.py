"""One step of gradient descent from w* as weights of y_q-LSA: its gradient at eta = 1, and given weights.

R seeds, D covariates, C = `context` tokens, P = D + 1 token width.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from icl.checks.differences import DIFFERENCES
from icl.checks.given_weights import DISTANCE, EXCESS, Again, judge_rows, require_family
from icl.checks.rounding import ROUNDING
from icl.checks.settings import in_range
from icl.checks.task_rule import BY_TASKS, risk_by_tasks
from icl.checks.verdict import Bound, Finding, Weights
from icl.checks.xie.support.initial_guess import MAX_DIM, TOO_LARGE, bounded
from icl.checks.xie.support.yq_lsa import LayerRisk, descent_from, loaded, predictor, read_in
from icl.errors import InputError
from icl.models import YqLSA
from icl.random import generator
from icl.tasks import LinearRegressionLaw
from icl.theory.closed_forms import isotropic_step
from icl.theory.quadratic import EPSILON, SymmetricSpace
from icl.theory.xie.initial_guess import gd_risk


def unit_step_gradient(w_star_D: Tensor, context: int) -> float:
    """Return the norm at eta = 1, 2 (d + 1)/C sqrt(d^2 + d + 2 |w*|^2 + |w*|^4): P's last entry, then Q."""
    D, square = len(w_star_D), float(w_star_D.square().sum())
    return 2 * (D + 1) / context * (D**2 + D + 2 * square + square**2) ** 0.5


def fitted_slope(contexts: Sequence[int], points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Least-squares slope of log(gradient norm) over log(C), and its share of the norms' rounding."""
    norms, roundings = np.array(points).T
    centred = np.log(contexts) - np.log(contexts).mean()
    weights = centred / (centred**2).sum()
    error = np.abs(weights) @ (roundings / norms + EPSILON * np.abs(np.log(norms)) + EPSILON)
    return float(weights @ np.log(norms)), float(error)


def judge_step(weights: Weights) -> Finding:
    """Compare weights with one step of descent from w*, up to what does not enter the prediction."""
    law = weights.regression("Theorem 4")
    require_family(weights, "Theorem 4", ["yq_lsa"])
    require_setting(law)
    in_range("check.weights: their dimension", law.dim, 1, MAX_DIM, TOO_LARGE)
    matrices = {name: matrix.detach().to(torch.float64) for name, matrix in weights.matrices.items()}
    seeds, rng = range(len(law.context_R)), generator(0, "check")
    models = [loaded(law.dim, {name: matrix[r, None] for name, matrix in matrices.items()}) for r in seeds]
    halved = [loaded(law.dim, model.matrices() | {"Q": model.Q / 2}) for model in models]
    layers = [LayerRisk(law.replica(r)) for r in seeds]
    risks = [risk_by_tasks(law.replica(r), *_layer(models[r])) for r in seeds]
    steps = [_step_risk(law.replica(r)) for r in seeds]
    size = law.dim + float(law.mean_RD.square().sum(1).max())
    return judge_rows(
        [row_of(law.replica(r), models[r]) for r in seeds],
        [row_of(law.replica(r), halved[r]) for r in seeds],
        Bound(
            DISTANCE,
            "the tolerance of ahn's figures, of the relative distance of (v, X_k) from (w*, X_k of the best "
            f"step); and the exact risk within {EXCESS:.0%} of the step's, d (d + 1)/(C + d + 1)",
            "distance",
        ),
        "the distance of the same weights with Q halved",
        again={
            "distance": Again(
                "predictions on a basis of Gram matrices",
                [_distance(law.replica(r), models[r]) for r in seeds],
                1.0,
            ),
            "risk_excess": Again(
                BY_TASKS, [a / b - 1 for a, b in zip(risks, steps, strict=True)], size / min(steps)
            ),
            "gradient_norm": Again(
                DIFFERENCES,
                [layers[r].norm_by_differences(models[r], rng) for r in seeds],
                max(layers[r].size(models[r]) for r in seeds),
            ),
            "risk": Again(BY_TASKS, risks, size),
            "gd_risk": Again(f"{BY_TASKS}, at the step", steps, size),
        },
    )


def _layer(model: YqLSA) -> tuple[Tensor, Tensor, Tensor]:
    """Return P and Q of its head, and v."""
    return model.P.detach()[0], model.Q.detach()[0], model.v.detach()[0, 0, 0]


def _step_risk(law: LinearRegressionLaw) -> float:
    """Return the risk of the best step, as that of a layer."""
    return risk_by_tasks(
        law, *_layer(descent_from(law.mean_RD[0], isotropic_step(law.dim, law.context_R[0])))
    )


def _distance(law: LinearRegressionLaw, model: YqLSA) -> float:
    """Return the distance from the best step of what two layers predict."""
    step = descent_from(law.mean_RD[0], isotropic_step(law.dim, law.context_R[0]))
    space = SymmetricSpace(law.dim + 1)
    basis_SPP = space.matrix(torch.eye(space.dimension, dtype=torch.float64))
    own, stated = (
        torch.cat([v_D[None], P_HPP[0, -1] @ basis_SPP @ (Q_HPP[0] @ read_in(v_D))[:, :-1]])
        for P_HPP, Q_HPP, v_D in map(_layer, (model, step))
    )
    return float((own - stated).norm() / stated.norm())


def row_of(law: LinearRegressionLaw, model: YqLSA) -> dict[str, float]:
    """Compare one seed's weights with the best step."""
    w_star_D, C = law.mean_RD[0], law.context_R[0]
    step = descent_from(w_star_D, isotropic_step(law.dim, C))
    exact, gd = LayerRisk(law), gd_risk(law.dim, C)
    risk = exact.value(model)
    (v_D, X_DPP), (step_D, step_DPP) = predictor(model), predictor(step)
    difference = torch.cat([v_D - step_D, (X_DPP - step_DPP).flatten()])
    return {
        "distance": float(difference.norm() / torch.cat([step_D, step_DPP.flatten()]).norm()),
        "risk_excess": risk / gd - 1,
        "gradient_norm": exact.gradient(model)[0],
        "risk": risk,
        "gd_risk": gd,
    }


def require_setting(law: LinearRegressionLaw) -> None:
    identity_DD = torch.eye(law.dim, dtype=torch.float64)
    off = max(float((M_RDD - identity_DD).abs().max()) for M_RDD in (law.Sigma_RDD, law.Sigma_w_RDD))
    if off > ROUNDING * law.dim or law.label_noise or law.guesses or law.read_out != 1:
        raise InputError(
            "check.weights: Theorem 4 takes x ~ N(0, I), w ~ N(w*, I), labels without noise, no given guess "
            "and read_out 1"
        )
    bounded("check.weights: the prior mean of their law", float(law.mean_RD.norm(dim=1).max()))
