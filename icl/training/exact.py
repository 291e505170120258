"""The population risk of a model, exact wherever icl.theory has it, and its gradient: exact or sampled.

R replicas, L layers, D covariates, C chunks of prompts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from icl.models import LinearTransformer, SparseA, SparseAB
from icl.random import generator
from icl.tasks.linear_regression import LinearRegressionLaw
from icl.theory.polynomial import InvariantRisk, scalars_on_s
from icl.theory.quadratic import QuadraticRisk
from icl.theory.statistics import norm_and_stderr
from icl.theory.words import sparse_a_risk
from icl.training.estimators import make_estimator

Matrices = Mapping[str, Tensor]
RiskFunction = Callable[[LinearTransformer], Tensor]

EXACT_SPARSE_A_LAYERS = 3  # icl.theory.words: words of length 2 L
EXACT_LAYER_DIM = 20
CHUNKS = 16


def exact_risk(model: LinearTransformer, law: LinearRegressionLaw) -> RiskFunction | None:
    """A differentiable (R,) risk at any weights of this model, or None where no exact form is at hand."""
    family = model.parametrization
    if model.activation != "identity":
        return None
    if family.layers == 1 and law.dim <= EXACT_LAYER_DIM:
        return _one_layer(law)
    centred = law.label_noise == 0 and not law.mean_RD.any()
    signed = law.read_out == -1  # Lemma 6: only then is the error v^T K u
    if isinstance(family, SparseA) and family.layers <= EXACT_SPARSE_A_LAYERS and centred and signed:
        return _sparse_a(law)
    return None


def _one_layer(law: LinearRegressionLaw) -> RiskFunction:
    replicas = zip(law.Sigma_RDD, law.Sigma_w_RDD, law.context_R, law.mean_RD, strict=True)
    risks = [
        QuadraticRisk.linear_regression(
            Sigma, Sigma_w, n, prior_mean=mean, label_noise=law.label_noise, target_sign=law.read_out
        )
        for Sigma, Sigma_w, n, mean in replicas
    ]

    def risk(model: LinearTransformer) -> Tensor:
        P_RLHPP, Q_RLHPP = model.parametrization.stack()
        layers = zip(risks, P_RLHPP[:, 0], Q_RLHPP[:, 0], strict=True)
        return torch.stack([quadratic.value_of_layer(P_HPP, Q_HPP) for quadratic, P_HPP, Q_HPP in layers])

    return risk


def _sparse_a(law: LinearRegressionLaw) -> RiskFunction:
    """In whitened coordinates, x = root u: A becomes root^T A root, Sigma_w becomes root^T Sigma_w root."""
    root_RDD = law.root_RDD
    Sigma_w_RDD = root_RDD.mT @ law.Sigma_w_RDD @ root_RDD
    identity = torch.eye(law.dim, dtype=torch.float64)
    shared = bool((Sigma_w_RDD - Sigma_w_RDD[0]).abs().max() < 1e-12) and len(set(law.context_R)) == 1

    def risk(model: LinearTransformer) -> Tensor:
        A_RLDD, _ = model.parametrization.sparse_weights()
        white_RLDD = -(root_RDD.mT[:, None] @ A_RLDD @ root_RDD[:, None])
        if shared:
            return sparse_a_risk(white_RLDD, identity, Sigma_w_RDD[0], law.context_R[0])
        one_by_one = zip(white_RLDD, Sigma_w_RDD, law.context_R, strict=True)
        return torch.stack([sparse_a_risk(A_LDD, identity, Sigma_w, n) for A_LDD, Sigma_w, n in one_by_one])

    return risk


def risk_on_s(model: LinearTransformer, law: LinearRegressionLaw) -> RiskFunction | None:
    """Exact risk of the weights' projection on the set S of ahn's Theorems 3 and 4, if the law is theirs."""
    family = model.parametrization
    whitened_RDD = law.root_RDD.mT @ law.Sigma_w_RDD @ law.root_RDD
    isotropic = bool((whitened_RDD - torch.eye(law.dim, dtype=torch.float64)).abs().max() < 1e-9)
    theirs = isotropic and law.read_out == -1 and not law.label_noise and not law.mean_RD.any()
    if not isinstance(family, SparseA | SparseAB) or model.activation != "identity" or not theirs:
        return None
    with_b = isinstance(family, SparseAB)
    try:
        risks = {n: InvariantRisk(law.dim, n, family.layers, with_b) for n in set(law.context_R)}
    except ValueError:
        return None  # too deep for the exact polynomial
    Sigma_RDD = law.Sigma_RDD

    def risk(model: LinearTransformer) -> Tensor:
        A_RLDD, B_RLDD = model.parametrization.sparse_weights()
        values = []
        for r, n in enumerate(law.context_R):
            if with_b and B_RLDD is not None:
                full_LDD = torch.cat([B_RLDD[r], torch.zeros_like(A_RLDD[r, :1])])
                a_L, beta_L = scalars_on_s(A_RLDD[r], Sigma_RDD[r], full_LDD)
                values.append(risks[n].value(a_L.tolist(), beta_L.tolist()[:-1]))
            else:
                a_L, _ = scalars_on_s(-A_RLDD[r], Sigma_RDD[r])
                values.append(risks[n].value(a_L.tolist()))
        return torch.tensor(values, dtype=torch.float64)

    return risk


@dataclass(frozen=True)
class GradientNorms:
    """Norm of the population gradient in each matrix, and its standard error (zero where exact)."""

    risk_R: Tensor
    risk_stderr_R: Tensor
    norms: dict[str, Tensor]  # "A0", ... -> (R,)
    stderrs: dict[str, Tensor]
    total_R: Tensor
    total_stderr_R: Tensor
    exact: bool


class CriticalPoint:
    """How far weights are from a critical point of the population risk: its gradient's norm, by matrix."""

    def __init__(
        self, model: LinearTransformer, law: LinearRegressionLaw, seeds: Sequence[int], samples: int
    ) -> None:
        self.seeds, self.samples = tuple(seeds), samples
        self.exact = exact_risk(model, law)
        name = "expected" if model.path == "gram" else "sampled"
        self.estimator = make_estimator(name, model, law)

    def measure(self, model: LinearTransformer, step: int) -> GradientNorms:
        """`model` in float64 on the CPU; `step` names the prompts, which training never sees."""
        if self.exact is not None:
            risk_R = self.exact(model)
            grads = torch.autograd.grad(risk_R.sum(), list(model.parametrization.parameters()))
            chunks_CR = risk_R.detach()[None]
            chunked = [grad[None] for grad in grads]
        else:
            chunks_CR, chunked = self._sampled(model, step)
        named = dict(zip(model.parametrization.shapes(), chunked, strict=True))
        return _norms(chunks_CR, named, self.exact is not None)

    def _sampled(self, model: LinearTransformer, step: int) -> tuple[Tensor, list[Tensor]]:
        size = max(self.samples // CHUNKS, 1)
        risks, grads = [], []
        streams = [generator(seed, "eval", step) for seed in self.seeds]
        for _ in range(CHUNKS):
            risk_R = self.estimator.risk(model, self.estimator.draw(streams, size))
            grads.append(torch.autograd.grad(risk_R.sum(), list(model.parametrization.parameters())))
            risks.append(risk_R.detach())
        return torch.stack(risks), [torch.stack(parts) for parts in zip(*grads, strict=True)]


def _norms(risk_CR: Tensor, chunked: dict[str, Tensor], exact: bool) -> GradientNorms:
    per_matrix: dict[str, Tensor] = {}
    for name, grad_CRX in chunked.items():
        flat = grad_CRX.flatten(2, -3)  # (C, R, matrices, rows, columns)
        per_matrix |= {f"{name}{i}": flat[:, :, i].flatten(2) for i in range(flat.shape[2])}
    norms, stderrs = {}, {}
    for label, grad_CRK in per_matrix.items():
        norms[label], stderrs[label] = norm_and_stderr(grad_CRK)
    total_R, total_stderr_R = norm_and_stderr(torch.cat(list(per_matrix.values()), dim=-1))
    stderr_R = torch.zeros_like(risk_CR[0]) if exact else risk_CR.std(0) / math.sqrt(len(risk_CR))
    return GradientNorms(risk_CR.mean(0), stderr_R, norms, stderrs, total_R, total_stderr_R, exact)
