"""Risk and gradient of a stack of eq. (8) by words: exact off the set S too, for few layers.

A in the sign of eq. (11), as in icl.checks.ahn.points_of_s. P points, L layers, D covariates, V variables.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from icl.checks.ahn import orbits
from icl.checks.ahn.points_of_s import Point
from icl.checks.rounding import ROUNDING
from icl.tasks import LinearRegressionLaw
from icl.theory.words import MAX_LAYERS as WORDS_LAYERS
from icl.theory.words import sparse_a_risk

WORDS_DIM = 10


def has_words(layers: int, law: LinearRegressionLaw) -> bool:
    """Is the risk of eq. (8) known exactly off S too?"""
    return layers <= WORDS_LAYERS and law.dim <= WORDS_DIM


def risk_by_words(A_LDD: Tensor, law: LinearRegressionLaw) -> Tensor:
    """Exact population risk without B, over any leading axes."""
    return sparse_a_risk(-A_LDD, law.Sigma_RDD[0], law.Sigma_w_RDD[0], law.context_R[0])


def gradient_by_words(A_LDD: Tensor, law: LinearRegressionLaw) -> Tensor:
    A = A_LDD.clone().requires_grad_()
    return torch.autograd.grad(risk_by_words(A, law).sum(), A)[0]


def directions_by_words(points: Sequence[Point]) -> orbits.Deviation:
    """Gradients at points of S, against the derivatives of the exact polynomial."""
    law, layers = points[0].law, len(points[0].a_L)
    A_PLDD = torch.stack([point.stack[0] for point in points])
    named = [-point.risk.derivatives(point.a_L.tolist()).gradient_V for point in points]
    found, plus = (orbits.whitened(gradient_by_words(A, law), layers, law) for A in (A_PLDD, -A_PLDD))
    return orbits.deviation(found, plus, torch.tensor(np.stack(named)), law)


def gradient_norm_by_words(point: Point) -> tuple[float, float]:
    """Norm of the population gradient on S, all layers together, and what rounding may make of 0."""
    # dR/da_l = -<G_l, Sigma^{-1}> with G_l = c_l Sigma, so ||G_l|| = |dR/da_l| ||Sigma|| / D.
    law, along_V = point.law, point.risk.derivatives((-point.a_L).tolist()).gradient_V
    plus = float(torch.linalg.matrix_norm(law.Sigma_RDD[0])) / law.dim * math.sqrt(along_V @ along_V)
    condition = float(torch.linalg.cond(law.Sigma_RDD).max())
    return float(gradient_by_words(point.stack[0], law).norm()), ROUNDING * condition * plus
