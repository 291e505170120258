"""The risk of a model under a law of linear regression, exact wherever icl.theory has it.

R replicas, L layers, D covariates.
"""

from __future__ import annotations

import torch
from torch import Tensor

from icl.tasks.gaussian_prompts import GaussianPrompts
from icl.tasks.law import Model, RiskFunction
from icl.theory.expected_traces import sparse_a_risk
from icl.theory.quadratic import QuadraticRisk

EXACT_SPARSE_A_LAYERS = 3  # icl.theory.expected_traces: words of length 2 L
EXACT_LAYER_DIM = 20
EXACT_WHERE = (
    f"one layer at dim <= {EXACT_LAYER_DIM}, or sparse_a of {EXACT_SPARSE_A_LAYERS} at most with "
    "read_out -1, prior mean 0 and neither noise nor guess"
)


def exact_risk(model: Model, law: GaussianPrompts) -> RiskFunction | None:
    """Return a differentiable (R,) risk at any weights of this model, or None where no exact form is at
    hand."""
    family = model.parametrization
    if model.activation != "identity" or not family.mask or getattr(family, "reads_constant", False):
        return None  # the sums have the query in them, or tokens have other entries than those drawn
    if family.layers == 1 and law.dim <= EXACT_LAYER_DIM:
        return _one_layer(law)
    centred = law.label_noise == 0 and not law.mean_RD.any() and not law.guesses
    signed = law.read_out == -1  # Lemma 6: only then is the error v^T K u
    if family.sparse and not family.with_b and family.layers <= EXACT_SPARSE_A_LAYERS and centred and signed:
        return _sparse_a(law)
    return None


def _one_layer(law: GaussianPrompts) -> RiskFunction:
    """Replicas that share a law are evaluated together."""
    alike: dict[tuple[bytes | int, ...], list[int]] = {}
    for r, context in enumerate(law.context_R):
        tensors = (law.Sigma_RDD[r], law.Sigma_w_RDD[r], law.mean_RD[r], law.guess_RD[r])
        alike.setdefault((context, *(t.numpy().tobytes() for t in tensors)), []).append(r)
    risks = [
        (rows, QuadraticRisk.linear_regression(**law.risk_arguments(rows[0]))) for rows in alike.values()
    ]
    order = torch.tensor([r for rows, _ in risks for r in rows]).argsort()

    def risk(model: Model) -> Tensor:
        (P_RLHPP, Q_RLHPP), (read_in, output) = model.parametrization.stack(), model.parametrization.ends()
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
    """In whitened coordinates, x = root u: A becomes root^T A root, Sigma_w becomes root^T Sigma_w root."""
    root_RDD = law.root_RDD
    Sigma_w_RDD = root_RDD.mT @ law.Sigma_w_RDD @ root_RDD
    identity = torch.eye(law.dim, dtype=torch.float64)
    shared = bool((Sigma_w_RDD - Sigma_w_RDD[0]).abs().max() < 1e-12) and len(set(law.context_R)) == 1

    def risk(model: Model) -> Tensor:
        A_RLDD, _ = model.parametrization.sparse_weights()
        white_RLDD = -(root_RDD.mT[:, None] @ A_RLDD @ root_RDD[:, None])
        if shared:
            return sparse_a_risk(white_RLDD, identity, Sigma_w_RDD[0], law.context_R[0])
        one_by_one = zip(white_RLDD, Sigma_w_RDD, law.context_R, strict=True)
        return torch.stack([sparse_a_risk(A_LDD, identity, Sigma_w, n) for A_LDD, Sigma_w, n in one_by_one])

    return risk
