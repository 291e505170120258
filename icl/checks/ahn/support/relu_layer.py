"""One layer of ReLU attention at sizes D and N, x and w ~ N(0, I): its exact risk, compared with tokens.

A point is b, the last row of P, with A, the D x D block of Q, in Q's own sign; the last row of Q is zero.
R points, B prompts, K queries, N context tokens, L = 1 layer, D covariates, P = D + 1 token width.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from icl.checks import differences
from icl.checks.numbers import Numbers, tried
from icl.checks.sequential import Comparison
from icl.checks.token_evidence import PRECISION, compare_with_samples, draw_tokens
from icl.models import Full, LinearTransformer
from icl.tasks import LinearRegressionLaw, TokenPrompt
from icl.theory.ahn.relu_risk import ReluRisk
from icl.theory.quadratic import EPSILON

PROMPTS = 64  # on which the library's predictions are compared
QUERIES = 8  # that share the tokens of a prompt

Point = tuple[Tensor, Tensor]  # b_P and A_DD
RELU_QUADRATURE = "moments of ReLU attention by a Gauss rule"
PREDICTION = "rounding: 2^-52 times a prediction's additions and products"


def diagonal_point(step: float, dim: int) -> Point:
    """b_0 = 0, b_1 = 1 and A = -step I."""
    b_P = torch.zeros(dim + 1, dtype=torch.float64)
    b_P[-1] = 1
    return b_P, -step * torch.eye(dim, dtype=torch.float64)


def random_point(risk: ReluRisk, rng: np.random.Generator) -> Point:
    b_P = torch.tensor(0.5 * rng.standard_normal(risk.dim + 1))
    noise_DD = rng.standard_normal((risk.dim, risk.dim)) / math.sqrt(risk.dim)
    return b_P, risk.minimiser * torch.tensor(np.eye(risk.dim) + noise_DD)


def convex_bound(risk: ReluRisk) -> float:
    """Minimum over X = b_1 A at b_0 = 0 of the quadratic that the risk is: R(0) - |R'(0)|^2 / (2 R'')."""
    steps = (-1.0, 0.0, 1.0)  # R'(0) is along I
    up, zero, down = (float(risk.value(*diagonal_point(step, risk.dim))) for step in steps)
    slope, second = (up - down) / 2, up + down - 2 * zero
    return zero - slope**2 / (2 * second)


def risk_by_quadrature(risk: ReluRisk, b_P: Tensor, A_DD: Tensor) -> float:
    """Return the risk once more, term by term. With u = A x_q and s = <x, u> / |u| a token's relu(|u| s) x
    has the mean k_1 u and the second moment k_2 u u^T + k_0 (|u|^2 I - u u^T), where k_0 = E relu(s)^2,
    k_1 = E relu(s) s and k_2 = E relu(s)^2 s^2."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(8)  # half of it, as the powers are even
    k_0, k_1, k_2 = (float(weights @ nodes**power) / math.sqrt(8 * math.pi) for power in (2, 2, 4))
    b_0, b_1, N = b_P[:-1], float(b_P[-1]), risk.context
    u_square, drift = float(A_DD.square().sum()), float((A_DD.mT @ b_0).square().sum())
    one = b_1**2 * (k_2 + (risk.dim - 1) * k_0) * u_square  # a token alone
    one += k_0 * (float(b_0 @ b_0) * u_square - drift) + k_2 * drift
    two = k_1**2 * (b_1**2 * u_square + drift)  # two different ones
    return one / N + (1 - 1 / N) * two + 2 * b_1 * k_1 * float(A_DD.trace()) + risk.dim


def gradient_norm(risk: ReluRisk, b_P: Tensor, A_DD: Tensor) -> float:
    leaves = [M.clone().requires_grad_() for M in (b_P, A_DD)]
    return float(torch.cat([g.flatten() for g in torch.autograd.grad(risk.value(*leaves), leaves)]).norm())


def by_differences(risk: ReluRisk, b_P: Tensor, A_DD: Tensor, rng: np.random.Generator) -> float:
    """Return `gradient_norm` once more, without autograd."""
    leaves = [M.clone().requires_grad_() for M in (b_P, A_DD)]
    gradients = torch.autograd.grad(risk.value(*leaves), leaves)
    with torch.no_grad():
        return differences.gradient_norm(risk.value, leaves, gradients, rng)


def compare_with_tokens(
    points: Sequence[Point], risk: ReluRisk, law: LinearRegressionLaw, rng: np.random.Generator, samples: int
) -> Comparison:
    """Compare the risk at every point with prompts drawn as tokens, at most `samples` in the first sample."""
    N, D = law.context_R[0], law.dim

    def losses(batch: int) -> list[Tensor]:
        x_q_BKD = torch.from_numpy(rng.standard_normal((batch, QUERIES, D)))
        x_BND = draw_tokens(law, rng, batch).x_BND
        return [mean_over_tasks(*point, x_BND, x_q_BKD) for point in points]

    formula = [float(risk.value(*point)) for point in points]
    precision = [PRECISION, *[2 * PRECISION] * (len(points) - 1)]
    return compare_with_samples(losses, formula, N * (2 * D + QUERIES), precision, most=samples)


def mean_over_tasks(b_P: Tensor, A_DD: Tensor, x_BND: Tensor, x_q_BKD: Tensor) -> Tensor:
    """(B,): the loss on these tokens, its mean over w and the length of x_q exact, over K directions drawn.

    With m = (1/N) sum_i relu(x_i^T A x_q) x_i the query's label becomes <b_0 + b_1 w, m>: linear in w and, as
    relu(c s) = c relu(s), in the length of x_q, whose square has mean D.
    """
    x_q_BKD = x_q_BKD * (x_q_BKD.shape[2] ** 0.5 / x_q_BKD.norm(dim=2, keepdim=True))
    weights_BKN = torch.relu(x_q_BKD @ A_DD.T @ x_BND.mT) / x_BND.shape[1]
    m_BKD = weights_BKN @ x_BND
    loss_BK = (m_BKD @ b_P[:-1]).square() + (b_P[-1] * m_BKD + x_q_BKD).square().sum(2)
    return loss_BK.mean(1)


def library_numbers(
    points: Sequence[Point], law: LinearRegressionLaw, rng: np.random.Generator
) -> list[Numbers]:
    """Measure the effect of a on the library's predictions on drawn tokens, and their largest error.

    Against -<b, (1/N) sum_i relu(x_i^T A x_q) z_i>, as a share of the sizes of its terms.
    """
    N, D = law.context_R[0], law.dim
    tokens = draw_tokens(law, rng, PROMPTS)
    z_BNP = torch.cat([tokens.x_BND, tokens.y_BN[:, :, None]], 2)
    x_q_BD = torch.from_numpy(rng.standard_normal((PROMPTS, D)))
    query_BP = torch.nn.functional.pad(x_q_BD, (0, 1))
    prompt = TokenPrompt(z_BNP[None], query_BP[None], torch.zeros(1, PROMPTS).double())
    error, effect = 0.0, 0.0
    for b_P, A_DD in points:
        # What has no effect (a, the other rows of P) is random.
        P_PP, Q_PP = (torch.from_numpy(rng.standard_normal((D + 1, D + 1))) for _ in range(2))
        P_PP[-1], Q_PP[:-1, :-1], Q_PP[-1] = b_P, A_DD, 0
        found_B = predict(P_PP, Q_PP, prompt)
        Q_PP[:-1, -1] = 0
        effect = max(effect, float((found_B - predict(P_PP, Q_PP, prompt)).abs().max()))
        scores_BN = (tokens.x_BND @ (A_DD @ x_q_BD[:, :, None]))[..., 0]
        expected_B = -((z_BNP @ b_P) * torch.relu(scores_BN)).sum(1) / N
        sizes_BN = (tokens.x_BND.abs() @ (A_DD.abs() @ x_q_BD.abs()[:, :, None]))[..., 0]
        sizes_B = ((z_BNP.abs() @ b_P.abs()) * sizes_BN).sum(1) / N
        error = max(error, float(((found_B - expected_B).abs() / sizes_B).max()))
    rounding = 2 * EPSILON * (3 * (D + 1) + N + 3)
    return [
        tried(effect_of_a=effect)
        .means("largest effect of the last column of Q on a prediction, over drawn prompts")
        .at_most(0, "exact: a meets the query's label, which is 0"),
        tried(prediction_error=error)
        .means("largest difference of the library's prediction from ReLU attention written out, relative")
        .at_most(rounding, PREDICTION),
    ]


def predict(P_PP: Tensor, Q_PP: Tensor, prompt: TokenPrompt) -> Tensor:
    """(B,), by the token path of icl.models."""
    family = Full(P_PP.shape[-1] - 1, 1)
    family.load({"P": P_PP[None, None], "Q": Q_PP[None, None]})
    with torch.no_grad():
        return LinearTransformer(family, "tokens", "relu").predict(prompt)[0]
