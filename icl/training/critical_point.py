"""The gradient of the population risk at given weights: exact, or sampled with its standard error.

R replicas, C chunks of prompts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from icl.models import Transformer
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
    """Distance to a critical point of the population risk: the norm of its gradient, by matrix."""

    def __init__(self, model: Transformer, law: Law, seeds: Sequence[int], samples: int) -> None:
        self.seeds, self.samples = tuple(seeds), samples
        self.exact = law.exact_risk(model)
        self.estimator = best_sampled(model, law)

    def measure(self, model: Transformer, step: int, exact_R: Tensor | None = None) -> GradientNorms:
        """Measure `model` in float64 on the CPU; `step` names the prompts, which training never sees;
        `exact_R` is the exact risk of this very model where it is known already."""
        matrices = dict(zip(model.parametrization.shapes(), model.parametrization.parameters(), strict=True))
        if self.exact is not None:
            known_R = self.exact(model) if exact_R is None else exact_R
            return gradient_norms([known_R], matrices, exact=True)
        norms = gradient_norms(self._estimates(model, step), matrices, exact=False)
        return replace(norms, plain=self._plain(model, step))

    def risk(self, model: Transformer, step: int) -> tuple[Tensor, Tensor]:
        """Return the risk and its standard error, zero where it is exact."""
        with torch.no_grad():
            if self.exact is not None:
                risk_R = self.exact(model)
                return risk_R, torch.zeros_like(risk_R)
            return _mean_and_stderr(self._estimates(model, step))

    def _plain(self, model: Transformer, step: int) -> tuple[Tensor, Tensor] | None:
        """Return the risk on a batch of the law's own prompts."""
        plain = self.estimator.plain
        if plain is None:
            return None
        streams = [generator(seed, "check", step) for seed in self.seeds]
        size = max(self.samples // CHUNKS, 1)
        with torch.no_grad():
            return _mean_and_stderr(plain.risk(model, plain.draw(streams, size)) for _ in range(CHUNKS))

    def _estimates(self, model: Transformer, step: int) -> Iterator[Tensor]:
        streams = [generator(seed, "eval", step) for seed in self.seeds]
        for _ in range(CHUNKS):
            yield self.estimator.risk(model, self.estimator.draw(streams, max(self.samples // CHUNKS, 1)))


def _mean_and_stderr(risks: Iterable[Tensor]) -> tuple[Tensor, Tensor]:
    risk_CR = torch.stack(list(risks))
    return risk_CR.mean(0), risk_CR.std(0) / math.sqrt(len(risk_CR))


def gradient_norms(risks: Iterable[Tensor], matrices: Mapping[str, Tensor], *, exact: bool) -> GradientNorms:
    """Norms of the gradient, in each matrix, of a risk: one that is exact, or independent estimates of it.

    A risk is a number for each replica, and `matrices` are stacks (R, ..., rows, columns); or it is one
    number, and they may be plain matrices.
    """
    found, grads = [], []
    for risk_R in risks:
        grads.append(torch.autograd.grad(risk_R.sum(), list(matrices.values())))
        found.append(risk_R.detach().reshape(-1))
    per_matrix: dict[str, Tensor] = {}
    for name, parts in zip(matrices, zip(*grads, strict=True), strict=True):
        grad_CX = torch.stack(parts)
        if grad_CX.ndim == 3:
            per_matrix[name] = grad_CX[:, None].flatten(2)
            continue
        flat = grad_CX.flatten(2, -3)  # (C, R, matrices, rows, columns)
        per_matrix |= {f"{name}{i}": flat[:, :, i].flatten(2) for i in range(flat.shape[2])}
    norms, stderrs = {}, {}
    for label, grad_CRK in per_matrix.items():
        norms[label], stderrs[label] = norm_and_stderr(grad_CRK)
    total_R, total_stderr_R = norm_and_stderr(torch.cat(list(per_matrix.values()), dim=-1))
    risk_R, stderr_R = (found[0], torch.zeros_like(found[0])) if exact else _mean_and_stderr(found)
    return GradientNorms(risk_R, stderr_R, norms, stderrs, total_R, total_stderr_R, exact)
