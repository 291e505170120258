"""Closed forms of xie: one layer of linear attention against a gradient step, for every initial guess.

x ~ N(0, Sigma), w = m + u with u ~ N(0, Sigma_w), C labels <w, x> without noise, query entry
y_q = <v, x> + b; S = (1/C) sum x x^T, G and X_k as in icl.theory.quadratic. Removing m from the labels is a
linear bijection of G, so a head sees linear functions of S, S u and u^T S u, and the least risk splits by
parity in u (and x_q):
  odd:  |Sigma^{1/2} (u - A S u)|^2, the risk of a preconditioned step from m: ahn's Theorem 1 is its minimum;
  even: (|Sigma^{1/2} (m - v)|^2 + b^2) E(1 - phi)^2, where phi is linear in S and u^T S u.
u^T S u - <Sigma_w, S> has mean zero given S, so it cannot help phi; by rotation phi = tau tr(Sigma^{-1} S),
C tr(Sigma^{-1} S) is chi^2 with D C degrees, so tau = C / (D C + 2) and E(1 - phi)^2 = 2 / (D C + 2).
D covariates, P = D + 1 token width, K = P query entries, H heads, C `context` tokens.
"""

from __future__ import annotations

import torch
from torch import Tensor

from icl.theory.closed_forms import isotropic_step, theorem1_preconditioner


def gd_risk(dim: int, context: int, step: float | None = None) -> float:
    """One gradient step from m, Sigma = Sigma_w = I: D (1 - 2 eta + eta^2 (1 + (D + 1)/C)).

    E|u - eta S u|^2 with E[S^2] = (1 + (D + 1)/C) I, for every m. `step` defaults to the best one,
    eta = C / (C + D + 1) (closed_forms.isotropic_step), where it is D (D + 1) / (C + D + 1).
    """
    eta = isotropic_step(dim, context) if step is None else step
    return dim * (1 - 2 * eta + eta**2 * (1 + (dim + 1) / context))


def constant_step(dim: int, context: int) -> float:
    """tau = C / (D C + 2): tau tr(Sigma^{-1} S) is the best guess at the constant 1."""
    _check_sizes(dim, context)
    return context / (dim * context + 2)


def gap_slope(dim: int, context: int) -> float:
    """2 / (D C + 2) = min E(1 - tau tr(Sigma^{-1} S))^2: the gap for each unit of guess_error."""
    _check_sizes(dim, context)
    return 2 / (dim * context + 2)


def guess_error(
    prior_mean: Tensor, guess_vector: Tensor, guess_bias: float, Sigma: Tensor | None = None
) -> float:
    """Mean square of the guess against the prior mean's label: |Sigma^{1/2} (m - v)|^2 + b^2."""
    _check_vectors(prior_mean, guess_vector)
    difference_D = prior_mean - guess_vector
    return float(difference_D @ _identity_unless(Sigma, len(prior_mean)) @ difference_D) + guess_bias**2


def gap(
    prior_mean: Tensor, guess_vector: Tensor, guess_bias: float, context: int, Sigma: Tensor | None = None
) -> float:
    """Least risk over all heads minus that of the best preconditioned step from m: slope * guess_error.

    Any Sigma (default I) and any Sigma_w; with Sigma = Sigma_w = I the step is plain gradient descent. Zero
    only at v = m, b = 0, which a trained guess can choose: then the step is the least risk of the class.
    """
    error = guess_error(prior_mean, guess_vector, guess_bias, Sigma)
    return gap_slope(len(prior_mean), context) * error


def optimal_matrices(
    prior_mean: Tensor,
    guess_vector: Tensor,
    guess_bias: float,
    context: int,
    Sigma: Tensor | None = None,
    Sigma_w: Tensor | None = None,
) -> Tensor:
    """X_KPP of least risk: X_k = sym((A_k, 0) (-m, 1)^T) + tau (m - v)_k T, X_p = 0 when b = 0.

    A_k is row k of Theorem 1's preconditioner (eta I if Sigma = Sigma_w = I), T = diag(Sigma^{-1}, 0). The
    risk knows X_k + v_k X_p and b^2 times a form of X_p: with b != 0 X_p = -tau T, so X_k gains tau v_k T
    (unique for Sigma_w != 0); with b = 0 X_p is free, and 0 here.
    """
    D = len(prior_mean)
    _check_vectors(prior_mean, guess_vector)
    Sigma, tau = _identity_unless(Sigma, D), constant_step(D, context)
    A_DD = theorem1_preconditioner(Sigma, context, _identity_unless(Sigma_w, D))
    T_PP, rows_KP = torch.zeros(2, D + 1, D + 1, dtype=torch.float64)
    T_PP[:D, :D], rows_KP[:D, :D] = torch.linalg.inv(Sigma), A_DD
    step_KPP = torch.einsum("kp,r->kpr", rows_KP, torch.cat([-prior_mean, prior_mean.new_ones(1)]))
    target_D = prior_mean if guess_bias else prior_mean - guess_vector
    constant_K = torch.cat([target_D, target_D.new_tensor([-1.0 if guess_bias else 0.0])])
    return (step_KPP + step_KPP.mT) / 2 + tau * torch.einsum("k,pr->kpr", constant_K, T_PP)


def fewest_heads(prior_mean: Tensor, guess_vector: Tensor, guess_bias: float) -> int:
    """Return the smallest H whose best risk is the least over all heads: 1 at v = m, b = 0, else D.

    Heads b_h give {X_k} iff all X_k vanish, as quadratic forms, on the complement of span(b_h): H is P less
    the dimension of the largest common isotropic subspace. At z = (x, s), up to multiples of X_p,
    X_k(z) = (A x)_k (s - <m, x>) + tau (m - v)_k x^T Sigma^{-1} x, and X_p(z) = -tau x^T Sigma^{-1} x if
    b != 0. At v = m, b = 0 the hyperplane s = <m, x> is isotropic; if b != 0 only e_p is; else e_p and one
    other line, with A x along m - v, and no plane. Sigma and Sigma_w positive definite, any D and C; so the
    D + 1 of Theorem 1 is never tight.
    """
    _check_vectors(prior_mean, guess_vector)
    exact = guess_bias == 0 and torch.equal(prior_mean, guess_vector)
    return 1 if exact else len(prior_mean)


def lost_slope(dim: int, context: int, heads: int) -> float:
    """Return what H heads lose at least on the least risk, for each unit of guess_error; Sigma = Sigma_w = I.

    With m removed, an isotropic subspace of dimension P - H meets {s = 0} in j = D - H dimensions or more,
    where the optimum is tau (m - v)_k |x|^2 and X_k must vanish. The cheapest such change of X_k in E<G, X>^2
    is block diagonal plus c times u^T S u: it costs kappa (1 + c)^2 + rho c^2 in units of tau (m - v)_k, with
    kappa = 2 j (D C + 2) / (C (H C + 2)) and rho = 2 E tr S^2. Least over c: tau^2 kappa rho / (kappa + rho),
    positive for every H < D and C >= 1.
    """
    _check_sizes(dim, context)
    if heads < 0:
        raise ValueError(f"heads={heads}: must be at least 0")
    lost = max(dim - heads, 0)
    kappa = 2 * lost * (dim * context + 2) / (context * (heads * context + 2))
    rho = 2 * dim * (1 + (dim + 1) / context)
    return constant_step(dim, context) ** 2 * kappa * rho / (kappa + rho)


def _identity_unless(matrix: Tensor | None, dim: int) -> Tensor:
    return torch.eye(dim, dtype=torch.float64) if matrix is None else matrix


def _check_sizes(dim: int, context: int) -> None:
    if dim < 1 or context < 1:
        raise ValueError(f"dim={dim}, context={context}: must both be at least 1")


def _check_vectors(prior_mean: Tensor, guess_vector: Tensor) -> None:
    if prior_mean.ndim != 1 or prior_mean.shape != guess_vector.shape:
        raise ValueError(
            f"prior_mean {tuple(prior_mean.shape)} and guess_vector {tuple(guess_vector.shape)}: "
            "must be vectors of equal length"
        )
