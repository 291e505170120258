"""The gradient of the population risk at given weights: exact, or sampled with its standard error.

R replicas, C chunks of prompts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from icl.models import LinearTransformer
from icl.random import generator
from icl.tasks.law import Law
from icl.theory.statistics import norm_and_stderr
from icl.training.estimators import best_sampled

CHUNKS = 16


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
    plain: tuple[Tensor, Tensor] | None = None  # risk and its error from plain draws, if these are others


class CriticalPoint:
    """How far weights are from a critical point of the population risk: its gradient's norm, by matrix."""

    def __init__(self, model: LinearTransformer, law: Law, seeds: Sequence[int], samples: int) -> None:
        self.seeds, self.samples = tuple(seeds), samples
        self.exact = law.exact_risk(model)
        self.estimator = best_sampled(model, law)

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
        norms = _norms(chunks_CR, named, self.exact is not None)
        return norms if self.exact is not None else replace(norms, plain=self._plain(model, step))

    def _plain(self, model: LinearTransformer, step: int) -> tuple[Tensor, Tensor] | None:
        """What a batch of the law's own prompts shows of the risk."""
        plain = self.estimator.plain
        if plain is None:
            return None
        streams = [generator(seed, "check", step) for seed in self.seeds]
        size = max(self.samples // CHUNKS, 1)
        with torch.no_grad():
            risk_CR = torch.stack([plain.risk(model, plain.draw(streams, size)) for _ in range(CHUNKS)])
        return risk_CR.mean(0), risk_CR.std(0) / math.sqrt(CHUNKS)

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
