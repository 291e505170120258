"""Linear dynamical systems: moments of their observations and the risk of one layer on AR(s) tokens.

x_t = A x_{t-1} + w_t, y_t = c^T x_t + v_t, x_0 ~ N(0, sigma_0^2 I). The sequence is y_1 .. y_T: entry 0 of
every array is y_1, whose state has already moved once. Starting at y_0 is another law (s = 1, d = 5, T = 30:
the constant of Theorem 4.1 moves by 6 %).
Given (A, c) the y are Gaussian with covariance C. A moment of order 2n is a polynomial of degree n in C
(Isserlis), and what a layer's risk needs has degree 3 at most: the mean over systems is a weighted sum over
a few matrices C, exact for modes that are independent given |c|, an average with its error otherwise.

B systems, Q nodes, D states, T observations, s window, P = s + 1 token width, N = T - s - 1 context tokens,
S = P (P + 1) / 2 pairs a <= b of token entries, K = s entries of the query, E = S or K x S coordinates.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import Self

import numpy as np
import torch
from torch import Tensor

from icl.tasks.quadratic import QuadraticRisk
from icl.theory.quadrature import gauss_rule, legendre_rule

DEGREE = 3  # in C, of the highest moments here: E[q q G G]
CHUNK_ENTRIES = 4_000_000  # of the largest intermediate, about 32 MB


@dataclass(frozen=True, eq=False)
class Covariances:
    """Weights and matrices C (Q, T, T) whose weighted sum of p(C) is the mean of p over random systems.

    Exact for every polynomial p of degree 3 at most in C; weights may be negative and sum to 1.
    """

    weight_Q: Tensor
    covariance_QTT: Tensor

    @property
    def length(self) -> int:
        return self.covariance_QTT.shape[-1]


@dataclass(frozen=True, eq=False)
class Moments:
    """Moments of the squared error: E[q_k q_l G_ab G_ce], E[y_T q_k G_ab], E[y_T^2], over pairs a <= b and c
    <= e."""

    form_KSKS: Tensor
    linear_KS: Tensor
    constant: Tensor


def parity_mask(window: int) -> tuple[Tensor, Tensor]:
    """Pattern (13): the free entries of W_V's last column (P,) and of W_QK (P, P)."""
    i_P = torch.arange(1, window + 2)
    query_PP = (i_P[:, None] + i_P) % 2 == 0
    query_PP[-1] = False
    return (i_P + window + 1) % 2 == 0, query_PP


def covariances_of_systems(
    A_BDD: Tensor, c_BD: Tensor, Sigma_w_DD: Tensor, noise: float, start: float, length: int
) -> Tensor:
    """C (B, T, T) of y_1 .. y_T given each system, by the recursion of the state's covariance.

    `noise` is sigma_v^2, `start` sigma_0^2.
    """
    B, D = c_BD.shape
    state_BDD = start * torch.eye(D, dtype=torch.float64).expand(B, D, D)
    row_BD, rows, seen = c_BD, [], []  # c^T A^k, and Cov(x_t, y_t) before the noise
    for _ in range(length):
        state_BDD = A_BDD @ state_BDD @ A_BDD.mT + Sigma_w_DD
        seen.append((state_BDD @ c_BD[..., None])[..., 0])
        rows.append(row_BD)
        row_BD = (row_BD[:, None] @ A_BDD)[:, 0]
    ahead_BTT = torch.stack(seen, 1) @ torch.stack(rows, 1).mT  # Cov(y_{t+k}, y_t) at [t, k]
    C_BTT = _from_diagonals(ahead_BTT)
    C_BTT.diagonal(dim1=1, dim2=2).add_(noise)
    return C_BTT


def covariance_of_modes(value_Q: Tensor, process: float, start: float, length: int) -> Tensor:
    """(Q, T, T) of one state x_t = value x_{t-1} + w_t, without observation noise."""
    variance_Q, variances = start + 0 * value_Q, []
    for _ in range(length):
        variance_Q = value_Q**2 * variance_Q + process
        variances.append(variance_Q)
    powers_QT = value_Q[:, None] ** torch.arange(length)
    return _from_diagonals(torch.stack(variances, 1)[..., None] * powers_QT[:, None])


def _from_diagonals(ahead_BTT: Tensor) -> Tensor:
    """Return the symmetric matrix with entry [t, t + k] from [t, k]."""
    T = ahead_BTT.shape[-1]
    t_T1, u_1T = torch.arange(T)[:, None], torch.arange(T)[None]
    lag_TT = (u_1T - t_T1).clamp(min=0)
    upper_BTT = ahead_BTT[:, t_T1, lag_TT].triu()
    return upper_BTT + upper_BTT.triu(1).mT


@dataclass(frozen=True)
class Rule:
    """Nodes and weights of a Gauss rule, exact to degree 3."""

    nodes: np.ndarray
    weights: np.ndarray

    @classmethod
    def point(cls, value: float) -> Self:
        return cls(np.array([value]), np.ones(1))

    @classmethod
    def of_moments(cls, moments: list[Fraction]) -> Self:
        """Return the rule from E[x^k], k = 0 .. 3."""
        if moments[2] == moments[1] ** 2:
            return cls.point(float(moments[1]))
        return cls(*gauss_rule(moments, 2))


def squared_norm_rule(dim: int, half_width: float) -> Rule:
    """Return the rule of |c|^2 for c uniform on [-half_width, half_width]^dim."""
    one = [Fraction(half_width) ** (2 * k) / (2 * k + 1) for k in range(DEGREE + 1)]
    total = [Fraction(1), *[Fraction(0)] * DEGREE]
    for _ in range(dim):
        total = [
            sum((comb(k, j) * total[j] * one[k - j] for j in range(k + 1)), Fraction(0))
            for k in range(DEGREE + 1)
        ]
    return Rule.of_moments(total)


def share_rule(dim: int) -> Rule:
    """Return the rule of u_1^2 for u uniform on the sphere: Beta(1/2, (dim - 1) / 2)."""
    moments = [Fraction(1)]
    for k in range(DEGREE):
        moments.append(moments[-1] * Fraction(2 * k + 1, dim + 2 * k))
    return Rule.of_moments(moments)


def covariances_of_independent_modes(
    dim: int, process: float, noise: float, start: float, length: int, half_width: float | None = None
) -> Covariances:
    """Return covariances for A symmetric, its eigenvalues v_m independent and uniform on [-1, 1], isotropic
    w, x_0.

    `half_width` None: A diagonal and c = 1, the paper's setting (a). Else A = Q^T diag(v) Q with Q Haar and c
    uniform on [-half_width, half_width]^dim: setting (b).
    C = noise I + r sum_m b_m g(v_m), with g the covariance of one mode, r = |c|^2 and b_m the shares of the
    squared coordinates of Q c: uniform on the sphere, independent of r. In (a) r = dim, b_m = 1 / dim.
    With delta_m = g(v_m) - E g and C_r = noise I + r E g, terms of p(C) in which some delta_m stands alone
    have mean zero, and at degree 3 no others have two different delta. So
        E p(C) = E_r [(1 - dim) p(C_r)] + dim E_{r, b, v} p(C_r + r b delta(v)),
    and Gauss rules in r, b (degree 3) and v (degree 6 T) make it exact.
    """
    radius = Rule.point(dim) if half_width is None else squared_norm_rule(dim, half_width)
    share = Rule.point(1 / dim) if half_width is None else share_rule(dim)
    nodes, weights = legendre_rule(DEGREE * length + 1)
    value_Q, value_weight_Q = torch.from_numpy(nodes), torch.from_numpy(weights / 2)
    g_QTT = covariance_of_modes(value_Q, process, start, length)
    mean_TT = torch.einsum("q,qtu->tu", value_weight_Q, g_QTT)
    noise_TT = noise * torch.eye(length, dtype=torch.float64)
    weight, covariance = [], []
    for r, r_weight in zip(radius.nodes, radius.weights, strict=True):
        weight.append(torch.tensor([(1 - dim) * r_weight], dtype=torch.float64))
        covariance.append((noise_TT + r * mean_TT)[None])
        for b, b_weight in zip(share.nodes, share.weights, strict=True):
            weight.append(dim * r_weight * b_weight * value_weight_Q)
            covariance.append(noise_TT + r * mean_TT + r * b * (g_QTT - mean_TT))
    return Covariances(torch.cat(weight), torch.cat(covariance))


def covariances_of_listed_modes(
    values: Sequence[float],
    process: float,
    noise: float,
    start: float,
    length: int,
    half_width: float | None = None,
) -> Covariances:
    """Return covariances for A symmetric with these eigenvalues, or minus these, isotropic w and x_0.

    C = noise I + r sum_m b_m g(v_m), and for -A the same with signs (-1)^(i+j). With `half_width` the shares
    b are the squares of a direction's coordinates, E[b_1^3], E[b_1^2 b_2], E[b_1 b_2 b_3] = 15, 3, 1 over
    D (D + 2) (D + 4): a rule on all b = e_m, (e_m + e_n) / 2 and (1, .., 1) / D has the same moments.
    """
    D = len(values)
    center_1D = torch.full((1, D), 1 / D, dtype=torch.float64)
    if half_width is None:
        radius, share_ED, share_weight_E = Rule.point(D), center_1D, torch.ones(1, dtype=torch.float64)
    else:
        radius, corner_DD = squared_norm_rule(D, half_width), torch.eye(D, dtype=torch.float64)
        m, n = torch.triu_indices(D, D, 1)
        share_ED = torch.cat([corner_DD, (corner_DD[m] + corner_DD[n]) / 2, center_1D])
        weights = [16.0 - 2 * D] * D + [16.0] * len(m) + [float(D**3)]
        share_weight_E = torch.tensor(weights, dtype=torch.float64) / (D * (D + 2) * (D + 4))
    g_DTT = covariance_of_modes(torch.tensor(values, dtype=torch.float64), process, start, length)
    mixed_ETT = torch.einsum("ed,dtu->etu", share_ED, g_DTT)
    noise_TT, sign_T = noise * torch.eye(length, dtype=torch.float64), (-1.0) ** torch.arange(length)
    weight, covariance = [], []
    for r, r_weight in zip(radius.nodes, radius.weights, strict=True):
        C_ETT = noise_TT + r * mixed_ETT
        weight += [r_weight * share_weight_E / 2] * 2
        covariance += [C_ETT, C_ETT * torch.outer(sign_T, sign_T)]
    return Covariances(torch.cat(weight), torch.cat(covariance))


def moments(covariances: Covariances, window: int) -> Moments:
    """Return the mean of the conditional moments; chunks bound the memory."""
    totals: list[Tensor] | None = None
    for weight_B, covariance_BTT in _chunks(covariances, window):
        part = conditional_moments(covariance_BTT, window)
        means = [torch.tensordot(weight_B, one, 1) for one in (part.form_KSKS, part.linear_KS, part.constant)]
        totals = (
            means if totals is None else [total + mean for total, mean in zip(totals, means, strict=True)]
        )
    assert totals is not None
    return Moments(*totals)


def conditional_moments(C_BTT: Tensor, window: int) -> Moments:
    """Those of Gaussian y with covariance C, each with a leading axis B: all 15 and all 3 pairings.

    G_ab = (1/N) sum_t z_ta z_tb with z_ta = y_{t+a}. With m = E[G], J = Cov(G, G), W_kt = Cov(q_k, y_t) and
    L_k,ab = (1/N) W_k (the symmetric matrix of G_ab's quadratic form, twice):
        E[q_k q_l G_1 G_2] = C_kl (m_1 m_2 + J_12) + V_kl,1 m_2 + V_kl,2 m_1 + L_k1 C L_l2 + L_l1 C L_k2,
        E[q_k q_l G_1] = C_kl m_1 + V_kl,1, V_kl,1 = L_k1 W_l.
    """
    T = C_BTT.shape[-1]
    query, last = slice(T - window - 1, T - 1), T - 1
    mean_BS, covariance_BSS = _gram_mean_and_covariance(C_BTT, window)
    L_BKST = _half_paired(C_BTT[:, query.start :], window)  # rows y_{T-s} .. y_T: the query, then the target
    V_BKLS = torch.einsum("bkst,blt->bkls", L_BKST[:, :-1], C_BTT[:, query])
    target_BKS = torch.einsum("bst,bkt->bks", L_BKST[:, -1], C_BTT[:, query])
    gram_BSS = mean_BS[:, :, None] * mean_BS[:, None] + covariance_BSS
    crossed_BKLSS = V_BKLS[..., :, None] * mean_BS[:, None, None, None]
    L_BET = L_BKST[:, :-1].flatten(1, 2)
    paired_BKSLS = (L_BET @ C_BTT @ L_BET.mT).view(len(C_BTT), window, -1, window, mean_BS.shape[1])
    form_BKLSS = (
        C_BTT[:, query, query, None, None] * gram_BSS[:, None, None]
        + (crossed_BKLSS + crossed_BKLSS.mT)
        + paired_BKSLS.permute(0, 1, 3, 2, 4)
        + paired_BKSLS.permute(0, 3, 1, 2, 4)
    )
    linear_BKS = C_BTT[:, last, query, None] * mean_BS[:, None] + target_BKS
    return Moments(form_BKLSS.transpose(2, 3), linear_BKS, C_BTT[:, last, last])


def pairs(window: int) -> tuple[Tensor, Tensor]:
    """Return (a, b) of the S pairs a <= b, counted from 0."""
    a_S, b_S = torch.triu_indices(window + 1, window + 1)
    return a_S, b_S


def quadratic_risk(part: Moments, window: int) -> QuadraticRisk:
    """Half the squared error of one layer on AR(s) tokens, eq. (9).

    In icl.tasks.quadratic's letters P_h is W_V^T and Q_h is W_QK^T: b is W_V's last column and a_k row k of
    W_QK. The query's last entry is 0, so a_{s+1} has no effect.
    """
    P = window + 1
    a_S, b_S = pairs(window)
    index_PP = torch.zeros(P, P, dtype=torch.long)
    index_PP[a_S, b_S] = index_PP[b_S, a_S] = torch.arange(len(a_S))
    form_KPPKPP = torch.zeros(P, P, P, P, P, P, dtype=torch.float64)
    linear_KPP = torch.zeros(P, P, P, dtype=torch.float64)
    form_KPPKPP[:window, :, :, :window] = part.form_KSKS[:, index_PP][:, :, :, :, index_PP] / 2
    linear_KPP[:window] = part.linear_KS[:, index_PP] / 2
    return QuadraticRisk.from_moments(form_KPPKPP, linear_KPP, float(part.constant) / 2)


def _gram_mean_and_covariance(C_BTT: Tensor, window: int) -> tuple[Tensor, Tensor]:
    """E[G_ab] (B, S) and Cov(G_ab, G_ce) (B, S, S) given each C."""
    N, P = C_BTT.shape[-1] - window - 1, window + 1
    a_S, b_S = pairs(window)
    block_BPPNN = C_BTT.unfold(1, N, 1).unfold(2, N, 1)[:, :P, :P]  # Cov(y_{t+a}, y_{u+c}) at [a, c, t, u]
    mean_BS = block_BPPNN[:, a_S, b_S].diagonal(dim1=-2, dim2=-1).mean(-1)
    block_BXN = block_BPPNN.reshape(len(C_BTT), P * P, N * N)
    product_BPPPP = (block_BXN @ block_BXN.mT).view(-1, P, P, P, P) / N**2  # [a, c, b, e]
    a, b, c, e = a_S[:, None], b_S[:, None], a_S[None], b_S[None]
    return mean_BS, product_BPPPP[:, a, c, b, e] + product_BPPPP[:, a, e, b, c]


def _half_paired(W_BKT: Tensor, window: int) -> Tensor:
    """L (B, K, S, T): (1/N) sum_t of W at y_{t+a}, left at y_{t+b}, and with a and b exchanged."""
    B, K, T = W_BKT.shape
    N = T - window - 1
    a_S, b_S = pairs(window)
    L_BKST = W_BKT.new_zeros(B, K, len(a_S), T)
    for pair, (a, b) in enumerate(zip(a_S.tolist(), b_S.tolist(), strict=True)):
        L_BKST[:, :, pair, b : b + N] += W_BKT[..., a : a + N] / N
        L_BKST[:, :, pair, a : a + N] += W_BKT[..., b : b + N] / N
    return L_BKST


def _chunks(covariances: Covariances, window: int) -> Iterator[tuple[Tensor, Tensor]]:
    T, P = covariances.length, window + 1
    size = max(1, CHUNK_ENTRIES // (P * P * T * T))
    yield from zip(covariances.weight_Q.split(size), covariances.covariance_QTT.split(size), strict=True)
