"""The risk of a model under a law of linear regression, exact wherever icl.theory has it.

R replicas, L layers, D covariates.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from icl.tasks.expected_traces import sparse_a_risk
from icl.tasks.gaussian_prompts import GaussianPrompts
from icl.tasks.integrated import degree_of_risk
from icl.tasks.law import Model, RiskFunction
from icl.tasks.quadratic import QuadraticRisk
from icl.theory.plane_rule import plane_rule

EXACT_SPARSE_A_LAYERS = 3  # icl.tasks.expected_traces: words of length 2 L
EXACT_LAYER_DIM = 20
REPLICAS = 8  # whose words are computed together: what they take then stays in the cache
EXACT_PLANE_DEGREE = 48  # of the risk in S; the rule at dim 2 has some degree^3 / 16 nodes
EXACT_WHERE = (
    f"one layer at dim <= {EXACT_LAYER_DIM}, or sparse_a of {EXACT_SPARSE_A_LAYERS} at most (at dim 2 "
    f"of {EXACT_PLANE_DEGREE // 2}, and sparse_ab of 3) with read_out -1, prior mean 0 and neither noise "
    "nor guess"
)


def exact_risk(model: Model, law: GaussianPrompts) -> RiskFunction | None:
    """Return a differentiable (R,) risk at any weights of this model, or None where no exact form is at
    hand."""
    family = model.parametrization
    if model.activation != "identity" or not family.mask or getattr(family, "reads_constant", False):
        return None  # the sums have the query in them, or tokens have other entries than those drawn
    if family.layers == 1 and law.dim <= EXACT_LAYER_DIM:
        return _one_layer(law)
    law = law.with_gaussian_labels()
    centred = law.label_noise == 0 and not law.mean_RD.any() and not law.guesses
    signed = law.read_out == -1  # Lemma 6: only then is the error v^T K u
    if not (family.sparse and centred and signed):
        return None
    if not family.with_b and family.layers <= EXACT_SPARSE_A_LAYERS:
        return _sparse_a(law)
    degree = degree_of_risk(model)
    return _in_the_plane(law, degree) if law.dim == 2 and degree <= EXACT_PLANE_DEGREE else None


def _one_layer(law: GaussianPrompts) -> RiskFunction:
    """Replicas that share a law are evaluated together."""
    alike: dict[tuple[Any, ...], list[int]] = {}
    arguments = [law.risk_arguments(r) for r in range(len(law.context_R))]
    for r, given in enumerate(arguments):
        key = tuple(v.numpy().tobytes() if isinstance(v, Tensor) else v for v in given.values())
        alike.setdefault(key, []).append(r)
    risks = [(rows, QuadraticRisk.linear_regression(**arguments[rows[0]])) for rows in alike.values()]
    order = torch.tensor([r for rows, _ in risks for r in rows]).argsort()

    def risk(model: Model) -> Tensor:
        (P_RLHPP, Q_RLHPP), (read_in, output) = model.parametrization.stack(), model.parametrization.io_maps()
        values = [
            quadratic.value_of_layer(
                P_RLHPP[rows, 0],
                Q_RLHPP[rows, 0],
                None if read_in is None else read_in[rows],
                None if output is None else output[rows],
            )
            for rows, quadratic in risks
        ]
        return values[0] if len(values) == 1 else torch.cat(values)[order]

    return risk


def _sparse_a(law: GaussianPrompts) -> RiskFunction:
    """Evaluate in whitened coordinates, x = root u: A becomes root^T A root, Sigma_w becomes root^T Sigma_w
    root."""
    root_RDD = law.root_RDD
    Sigma_w_RDD = root_RDD.mT @ law.Sigma_w_RDD @ root_RDD
    identity = torch.eye(law.dim, dtype=torch.float64)
    shared = bool((Sigma_w_RDD - Sigma_w_RDD[0]).abs().max() < 1e-12) and len(set(law.context_R)) == 1

    def risk(model: Model) -> Tensor:
        A_RLDD, _ = model.parametrization.sparse_weights()
        white_RLDD = -(root_RDD.mT[:, None] @ A_RLDD @ root_RDD[:, None])
        if shared:
            some = white_RLDD.split(REPLICAS)
            return torch.cat([sparse_a_risk(A, identity, Sigma_w_RDD[0], law.context_R[0]) for A in some])
        one_by_one = zip(white_RLDD, Sigma_w_RDD, law.context_R, strict=True)
        return torch.stack([sparse_a_risk(A_LDD, identity, Sigma_w, n) for A_LDD, Sigma_w, n in one_by_one])

    return risk


def _in_the_plane(law: GaussianPrompts, degree: int) -> RiskFunction:
    """Sum the risk given each context over the nodes of a rule for S, any number of layers at dim 2."""
    rules = [plane_rule(context, degree) for context in law.context_R]
    S_RBEE = law.u_root_REE[:, None] @ torch.from_numpy(np.stack([G_JDD for G_JDD, _ in rules]))
    S_REEB = (S_RBEE @ law.u_root_REE.mT[:, None]).movedim(1, -1).contiguous()
    weight_RB = torch.from_numpy(np.stack([weight_J for _, weight_J in rules]))

    def risk(model: Model) -> Tensor:
        given = S_REEB, law.label_root_REK, law.query_root_RED
        return (weight_RB * model.risk_given_gram(*given, read_out=law.read_out)).sum(-1)

    return risk
