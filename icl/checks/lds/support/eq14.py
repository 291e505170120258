"""Eq. (14) of AR(1) tokens: its constant, predictions and gradient, and moments that must vanish for it.

S = 3 pairs of token entries: (1, 1), (1, 2), (2, 2).
"""

from __future__ import annotations

import torch
from torch import Tensor

from icl.checks.lds.support.evidence import predict_on_tokens
from icl.checks.lds.support.population import (
    CONFIDENCE,
    Population,
    exchange,
    mean_over,
    scale_to_mean_square_one,
    z_of_parts,
)
from icl.tasks import TokenPrompt
from icl.theory.dynamical_system import Covariances, Moments, gram_moments, half_squared_error, moments


def row_against_14(population: Population, x_KS: Tensor) -> dict[str, float]:
    """Compare one seed's weights with (14) by their coefficients."""

    def excess(part: Moments) -> float:
        return half_risk_at(part, x_KS) / half_risk_at(part, at_14(part)) - 1

    part = population.moments
    best_KS, form_SS = at_14(part), part.form_KSKS[0, :, 0]
    off_S = (x_KS - best_KS)[0]
    return {
        "distance": float((off_S @ form_SS @ off_S / (best_KS[0] @ form_SS @ best_KS[0])).sqrt()),
        "risk_excess": excess(part),
        "risk_excess_error": CONFIDENCE * population.stderr(excess),
        "gradient_norm": float(gradient(part, x_KS).norm()),
        "weight": float(x_KS[0, 1]),
        "constant": constant(part),
    }


def at_14(part: Moments) -> Tensor:
    """Return the coefficients of (14)."""
    return torch.tensor([[0.0, constant(part), 0.0]], dtype=torch.float64)


def constant(part: Moments) -> float:
    """Return c of eq. (14)."""
    return float(part.linear_KS[0, 1] / part.form_KSKS[0, 1, 0, 1])


def gradient(part: Moments, x_KS: Tensor) -> Tensor:
    """Return (S,) d/dx of half the squared error."""
    return part.form_KSKS[0, :, 0] @ x_KS[0] - part.linear_KS[0]


def half_risk_at(part: Moments, x_KS: Tensor) -> float:
    """Return half the squared error."""
    return float(half_squared_error(part, x_KS))


def moments_z(population: Population, entries: list[int]) -> Tensor:
    """Return moments of G_12 or y_T with these Gram entries, of sequences of mean square 1, in standard
    errors.

    Those with G_11 and G_22, the entries 0 and 2, must vanish for (14) to solve (11).
    """
    rows = []
    for part in population.parts:
        found = moments(mean_over(scale_to_mean_square_one(part.covariance_QTT)), 1)
        rows.append(torch.cat([found.form_KSKS[0, 1, 0, entries], found.linear_KS[0, entries]]))
    return z_of_parts(torch.stack(rows))


def canonical(b_P: Tensor, a_KP: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mirror image, of two, that (14) is: b's weight in its last entry."""
    return exchange(b_P, a_KP) if abs(b_P[0]) > abs(b_P[1]) else (b_P, a_KP)


def predictions(prompt: TokenPrompt, c: float) -> Tensor:
    """Return the predictions of eq. (6) with (14), token by token."""
    b_P, a_KP = torch.tensor([0.0, 1.0]).double(), torch.tensor([[c, 0.0]], dtype=torch.float64)
    return predict_on_tokens(b_P, a_KP, prompt)


def _query_square_times_gram(part: Covariances) -> Tensor:
    """Return E[y_{T-1}^2 G_ab], of degree 2: pairings of (y_{T-1}, y_{T-1}) and of each with one of the
    token's."""
    C_QTT, N = part.covariance_QTT, part.length - 2
    row_QT = C_QTT[:, -2]
    values = []
    for a, b in ((0, 0), (0, 1), (1, 1)):
        own_Q = C_QTT[:, -2, -2] * C_QTT[:, a : a + N, b : b + N].diagonal(dim1=1, dim2=2).mean(-1)
        values.append(own_Q + 2 * (row_QT[:, a : a + N] * row_QT[:, b : b + N]).mean(-1))
    return part.weight_Q @ torch.stack(values, -1)


def size_of_gradient(population: Population, x_KS: Tensor) -> float:
    """Return the size of all terms of the gradient, without their signs."""
    (part,) = population.parts
    sizes = moments(Covariances(part.weight_Q.abs(), part.covariance_QTT), 1)
    form_SS, linear_S = sizes.form_KSKS[0, :, 0].abs(), sizes.linear_KS[0].abs()
    return float((form_SS @ x_KS[0].abs() + linear_S).norm())


def printed_denominators(population: Population, longer: Population) -> tuple[float, float, float]:
    """Return E[sum y_i y_{i+1} + sum y_r y_{r+1} y_{T-1}^2], E[sum sum y_{T-1} y_T], and the right one."""
    (part,) = population.parts
    N = population.law.context
    mean_S, _ = gram_moments(part, 1)
    # At length T + 1, window 2 the query is (y_{T-1}, y_T); G_12 still ends at y_{T-1}: pair (0, 1).
    later = float(longer.moments.form_KSKS[0, 1, 1, 1])
    single = float(_query_square_times_gram(part)[1])
    right = float(population.moments.form_KSKS[0, 1, 0, 1])
    return N * (float(mean_S[1]) + single), N**2 * later, N**2 * right
