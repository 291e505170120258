"""Risk and gradient of a stack of eq. (8) by words: exact off the set S too, for few layers.

A is whitened and in the sign of eq. (11), as in icl.checks.ahn.support.critical_set. P points, L layers,
D covariates, V variables.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from icl.checks.ahn.support import orbits
from icl.checks.ahn.support.critical_set import Point, gradient_as_printed
from icl.checks.rounding import ROUNDING
from icl.tasks import LinearRegressionLaw
from icl.theory.expected_traces import MAX_LAYERS as WORDS_LAYERS
from icl.theory.expected_traces import sparse_a_risk

WORDS_DIM = 10


def has_words(layers: int, law: LinearRegressionLaw) -> bool:
    """Return whether the risk of eq. (8) is known exactly off S too."""
    return layers <= WORDS_LAYERS and law.dim <= WORDS_DIM


def risk_by_words(A_LDD: Tensor, context: int) -> Tensor:
    """Exact population risk of whitened A without B, over any leading axes."""
    identity = torch.eye(A_LDD.shape[-1], dtype=torch.float64)
    return sparse_a_risk(-A_LDD, identity, identity, context)


def gradient_by_words(A_LDD: Tensor, context: int) -> Tensor:
    A = A_LDD.clone().requires_grad_()
    return torch.autograd.grad(risk_by_words(A, context).sum(), A)[0]


def directions_by_words(points: Sequence[Point]) -> orbits.Deviation:
    """Gradients at points of S, against the derivatives of the exact polynomial."""
    A_PLDD = torch.stack([point.stack[0] for point in points])
    named = [-point.risk.derivatives(point.a_L.tolist()).gradient_V for point in points]
    found, plus = (gradient_by_words(A, points[0].law.context_R[0]) for A in (A_PLDD, -A_PLDD))
    return orbits.deviation(found, plus, torch.tensor(np.stack(named)))


def gradient_norm_by_words(point: Point) -> tuple[float, float]:
    """Norm of the population gradient on S, in the paper's coordinates, all layers together, and what
    rounding may make of 0."""
    law, along_V = point.law, point.risk.derivatives((-point.a_L).tolist()).gradient_V
    white_LDD = gradient_by_words(point.stack[0], law.context_R[0])
    # Whitened, dR/da_l = -tr G_l with G_l = c_l I, so ||G_l|| = |dR/da_l| / sqrt(D); ||root G root^T|| is at
    # most ||Sigma||_2 ||G||.
    largest = float(torch.linalg.matrix_norm(law.Sigma_RDD[0], 2))
    bound = ROUNDING * largest * math.sqrt(along_V @ along_V / law.dim)
    return float(gradient_as_printed(white_LDD, len(white_LDD), law).norm()), bound
