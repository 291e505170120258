"""Linear attention whose query attends to itself: the risk of a function g of the eigenvalues of S'.

In the eigenvectors of S', with g = c (1 - r) at the eigenvalues lambda_i and v the query's row of the right
singular vectors, x_i = sqrt(n lambda_i) v_i and e_i = x_i (1 - g_i + sum_j g_j v_j^2). For N(0, I) the
v_i^2 are the first D of a Dirichlet(1/2, .., 1/2) of n + 1, independent of the spectrum: the risk given a
spectrum is a quadratic form in g, exactly. With a mask S' is the context's own S, and e_i = x_i (1 - g_i).

B spectra, D covariates, N = n context, L layers, K basis functions.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from icl.models.giannou.columns import ColumnStack, Head, Layer, Rows

DEGREE = 12  # of the polynomials in log lambda that stand for any function of an eigenvalue


def spectra(rng: np.random.Generator, samples: int, tokens: int, dim: int) -> Tensor:
    """Draw eigenvalues of (1/tokens) sum x x^T, x ~ N(0, I), by Bartlett's triangle."""
    L_BDD = np.tril(rng.standard_normal((samples, dim, dim)), -1)
    degrees_D = tokens - np.arange(dim)
    L_BDD[:, np.arange(dim), np.arange(dim)] = np.sqrt(rng.chisquare(degrees_D, (samples, dim)))
    return torch.from_numpy(np.linalg.svd(L_BDD, compute_uv=False) ** 2 / tokens)


def unmasked_risk(g_BD: Tensor, lambda_BD: Tensor, context: int) -> Tensor:
    """Return E |e|^2 / D given the spectrum of S'.

    For v^2 ~ Dirichlet(1/2, ..) of m = n + 1 and T = sum_j g_j v_j^2, E v_i^2 = 1/m, E v_i^2 T = (G + 2
    g_i) / (m (m+2)), E v_i^2 T^2 = (8 g_i^2 + 4 g_i G + 2 Q + G^2) / (m (m+2) (m+4)), G = sum g, Q = sum
    g^2.
    """
    m = context + 1
    G_B1, Q_B1 = g_BD.sum(-1, keepdim=True), g_BD.square().sum(-1, keepdim=True)
    first_BD = (1 - g_BD).square() / m + 2 * (1 - g_BD) * (G_B1 + 2 * g_BD) / (m * (m + 2))
    second_BD = (8 * g_BD.square() + 4 * g_BD * G_B1 + 2 * Q_B1 + G_B1.square()) / (m * (m + 2) * (m + 4))
    return context * (lambda_BD * (first_BD + second_BD)).mean(-1)


def risk_by_terms(g_BD: Tensor, lambda_BD: Tensor, context: int) -> Tensor:
    """Return the same, the moments of Dirichlet's law one by one.

    E prod_i v_i^{2 k_i} = prod_i (1/2)_{k_i} / (m/2)_k, k the sum of the k_i, (a)_k a rising factorial.
    """
    m, D = context + 1, lambda_BD.shape[-1]
    i, j, k = torch.meshgrid(*[torch.arange(D)] * 3, indexing="ij")
    same_ij, same_ik, same_jk = (i == j).double(), (i == k).double(), (j == k).double()
    # (1/2)_1^3 = 1/8 for three different ones, (1/2)_2 (1/2)_1 = 3/8 for two alike, (1/2)_3 = 15/8 for three
    alike = same_ij + same_ik + same_jk
    third_DDD = torch.where(alike == 0, 1.0, torch.where(alike == 1, 3.0, 15.0)).double()
    third_DDD = third_DDD / 8 / (m / 2 * (m / 2 + 1) * (m / 2 + 2))
    second_DD = (1 + 2 * torch.eye(D, dtype=torch.float64)) / 4 / (m / 2 * (m / 2 + 1))
    short_BD = 1 - g_BD
    first_BD = short_BD.square() / 2 / (m / 2)
    cross_BD = 2 * short_BD * (g_BD @ second_DD)
    square_BD = torch.einsum("ijk,bj,bk->bi", third_DDD, g_BD, g_BD)
    return context * (lambda_BD * (first_BD + cross_BD + square_BD)).mean(-1)


def stderr(values_B: Tensor) -> float:
    """Return the standard error of the mean."""
    return float(values_B.std() / len(values_B) ** 0.5)


def quadratic_form(lambda_BD: Tensor, context: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return (F, f, c) with unmasked_risk = g^T F g - 2 f^T g + c, g the values at the eigenvalues."""
    m, D = context + 1, lambda_BD.shape[-1]
    sum_B1 = lambda_BD.sum(-1, keepdim=True)
    m2, m3 = m * (m + 2), m * (m + 2) * (m + 4)
    pairs_BDD = lambda_BD[:, :, None] + lambda_BD[:, None]
    ones_DD = torch.ones(D, D, dtype=torch.float64)
    diagonal_BD = lambda_BD * (1 / m - 4 / m2 + 8 / m3) + 2 * sum_B1 / m3
    F_BDD = (
        torch.diag_embed(diagonal_BD) - pairs_BDD / m2 + 2 * pairs_BDD / m3 + sum_B1[..., None] * ones_DD / m3
    )
    f_BD = lambda_BD * (1 / m - 2 / m2) - sum_B1 / m2
    scale = context / D
    return scale * F_BDD, scale * f_BD, scale * sum_B1[:, 0] / m


def least_by_spectrum(lambda_BD: Tensor, context: int) -> Tensor:
    """Return the least risk for each spectrum if g may depend on all of it: what no layers can beat."""
    F_BDD, f_BD, c_B = quadratic_form(lambda_BD, context)
    best_BD = torch.linalg.solve(F_BDD, f_BD[..., None])[..., 0]
    return c_B - (f_BD * best_BD).sum(-1)


def response(theta: Tensor, lambda_BD: Tensor, layers: int) -> Tensor:
    """Return g = c (1 - r) for theta = (a_1 .. a_L, beta_1 .. beta_{L-1}, c)."""
    p_BD, r_BD = torch.ones_like(lambda_BD), torch.ones_like(lambda_BD)
    for layer in range(layers):
        r_BD = r_BD * (1 - theta[layer] * lambda_BD * p_BD.square())
        if layer + 1 < layers:
            p_BD = p_BD * (1 - theta[layers + layer] * lambda_BD * p_BD.square())
    return theta[-1] * (1 - r_BD)


def unmasked_stack(a_L: Tensor, beta_L: Tensor, dim: int, context: int) -> ColumnStack:
    """Return the same as a transformer of (3.1a), the 1/n within its values."""
    rows, layers = Rows({"x": dim, "y": 1}), []
    for layer, a in enumerate(a_L.tolist()):
        moves = {"y": {"y": -a / context}}
        if layer < len(beta_L):
            moves["x"] = {"x": -float(beta_L[layer]) / context}
        layers.append(Layer([Head.of(rows, moves, key={"x": 1.0}, query={"x": 1.0})]))
    return ColumnStack(rows, layers)


def chebyshev_basis(lambda_BD: Tensor, scaled_to_BD: Tensor) -> Tensor:
    """Return Chebyshev polynomials in log lambda, mapped to [-1, 1] by the range of the spectra fitted."""
    low, high = float(scaled_to_BD.min().log()), float(scaled_to_BD.max().log())
    t_BD = (2 * (lambda_BD.log() - low) / (high - low) - 1).clamp(-1, 1)
    return torch.stack([torch.cos(k * torch.arccos(t_BD)) for k in range(DEGREE + 1)], -1)


def risk_of_best_function(fitted_BD: Tensor, fresh_BD: Tensor, context: int) -> Tensor:
    """Return the risk on fresh spectra of the best function of an eigenvalue on others."""
    basis_BDK, fresh_BDK = chebyshev_basis(fitted_BD, fitted_BD), chebyshev_basis(fresh_BD, fitted_BD)
    form_BDD, linear_BD, _ = quadratic_form(fitted_BD, context)
    M_KK = torch.einsum("bik,bij,bjl->kl", basis_BDK, form_BDD, basis_BDK) / len(fitted_BD)
    m_K = torch.einsum("bik,bi->k", basis_BDK, linear_BD) / len(fitted_BD)
    theta_K = torch.linalg.lstsq(M_KK, m_K[:, None], driver="gelsd").solution[:, 0]
    return unmasked_risk(fresh_BDK @ theta_K, fresh_BD, context)
