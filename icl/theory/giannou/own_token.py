"""Scalar layers of linear attention, A_l and B_l multiples of I, whose query attends to itself.

With S' = (sum_i x_i x_i^T + x x^T) / n, the query x among the tokens, every layer is a function of S', and L
layers leave the error w^T e, e = x - g(S') x + x (x^T S'^{-1} g(S') x) / n, with a polynomial g of degree
(3^L - 1) / 2, g(0) = 0. With a mask S' is the context's own S and e = x - g(S) x.

For tokens N(0, I) x_i = sqrt(n s_i) v_i in the eigenvectors of S', and the v_i^2 are the first d of a
Dirichlet(1/2, .., 1/2) of m = n + 1, independent of the spectrum: the risk given a spectrum is a quadratic
form in the values of g there. B spectra, D covariates.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from flint import fmpq, fmpq_mat, fmpq_poly
from numpy.typing import NDArray

from icl.theory.giannou.columns import Head, Layer
from icl.theory.giannou.scalar_family import Masked, best_by_layers
from icl.theory.quadrature import gauss_rule
from icl.theory.rationals import dot
from icl.theory.wishart import covariance_moments, mean_trace

Array = NDArray[np.float64]
DIGITS = 9  # decimals of step sizes that are judged exactly


def triangles(rng: np.random.Generator, samples: int, tokens: int, dim: int) -> Array:
    """Draw Bartlett's triangles L: L L^T has the law of the sum of `tokens` matrices x x^T, x ~ N(0, I)."""
    L_BDD = np.tril(rng.standard_normal((samples, dim, dim)), -1)
    degrees_D = tokens - np.arange(dim)
    L_BDD[:, np.arange(dim), np.arange(dim)] = np.sqrt(rng.chisquare(degrees_D, (samples, dim)))
    return L_BDD


def spectra(rng: np.random.Generator, samples: int, tokens: int, dim: int) -> Array:
    """Draw eigenvalues of the mean of `tokens` matrices x x^T."""
    return np.linalg.svd(triangles(rng, samples, tokens, dim), compute_uv=False) ** 2 / tokens


def unmasked_risk(g_BD: Array, s_BD: Array, context: int) -> Array:
    """Return E |e|^2 / D given the spectrum of S' and the values of g there.

    With T = sum_j g_j v_j^2, G = sum g and Q = sum g^2: E v_i^2 = 1/m, E v_i^2 T = (G + 2 g_i) / (m (m+2)),
    E v_i^2 T^2 = (8 g_i^2 + 4 g_i G + 2 Q + G^2) / (m (m+2) (m+4)).
    """
    m = context + 1
    G_B1, Q_B1 = g_BD.sum(-1, keepdims=True), np.square(g_BD).sum(-1, keepdims=True)
    first_BD = np.square(1 - g_BD) / m + 2 * (1 - g_BD) * (G_B1 + 2 * g_BD) / (m * (m + 2))
    second_BD = (8 * g_BD**2 + 4 * g_BD * G_B1 + 2 * Q_B1 + G_B1**2) / (m * (m + 2) * (m + 4))
    return context * (s_BD * (first_BD + second_BD)).mean(-1)


def least_by_spectrum(s_BD: Array, context: int) -> Array:
    """Return the least of these risks if g may depend on the whole spectrum: what no layers can beat."""
    m, D = context + 1, s_BD.shape[-1]
    m2, m3 = m * (m + 2), m * (m + 2) * (m + 4)
    sum_B1, pairs_BDD = s_BD.sum(-1, keepdims=True), s_BD[:, :, None] + s_BD[:, None]
    diagonal_BD = s_BD * (1 / m - 4 / m2 + 8 / m3) + 2 * sum_B1 / m3
    form_BDD = (
        diagonal_BD[..., None] * np.eye(D) - pairs_BDD / m2 + 2 * pairs_BDD / m3 + sum_B1[..., None] / m3
    )
    linear_BD = s_BD * (1 / m - 2 / m2) - sum_B1 / m2
    best_BD = np.linalg.solve(form_BDD, linear_BD[..., None])[..., 0]
    return context / D * (sum_B1[:, 0] / m - (linear_BD * best_BD).sum(-1))


def response(theta: Sequence[fmpq]) -> fmpq_poly:
    """Return g = c (1 - r) of theta = (a_1 .. a_L, beta_1 .. beta_{L-1}, c): from r = p = 1 r <- r (1 - a s
    p^2), p <- p (1 - beta s p^2)."""
    layers, s = len(theta) // 2, fmpq_poly([0, 1])
    r = p = fmpq_poly([1])
    for layer in range(layers):
        step = s * p * p
        r = r * (1 - theta[layer] * step)
        if layer + 1 < layers:
            p = p * (1 - theta[layers + layer] * step)
    return theta[-1] * (1 - r)


def layers_of(theta: Sequence[fmpq], context: int) -> list[Layer]:
    """Return the same as layers of eq. (3.1a) on blocks x and y, whose answer is -c times the query's y."""
    layers = len(theta) // 2
    found: list[Layer] = []
    for layer in range(layers):
        moves = {"y": {"y": -theta[layer] / context}}
        if layer + 1 < layers:
            moves["x"] = {"x": -theta[layers + layer] / context}
        found.append((Head(moves, key={"x": 1}, query={"x": 1}),))
    return found


def prediction(theta: Sequence[fmpq], X: fmpq_mat, w: fmpq_mat, own: bool = True) -> fmpq:
    """Return w^T (x - e) by the formula, the tokens the columns of X and the last the query; `own` is its own
    term in e."""
    n, d = X.ncols() - 1, X.nrows()
    x = fmpq_mat([[row[-1]] for row in X.tolist()])
    S, power = X * X.transpose() / fmpq(n), x
    moved, shorter = fmpq_mat(d, 1), fmpq(0)  # g(S') x and x^T S'^{-1} g(S') x
    for c in response(theta).coeffs()[1:]:
        shorter += c * dot(x, power)
        power = S * power
        moved += c * power
    return dot(w, moved) - (dot(w, x) * shorter / n if own else 0)


def masked_risks(dim: int, context: int, layers: int) -> list[fmpq]:
    """Return the risk over d of masked layers, from 1 to `layers`, exactly at the best step sizes found."""
    moments = covariance_moments(dim, context, 3**layers + 1)
    s_J, weight_J = gauss_rule([Fraction(int(m.p), int(m.q)) for m in moments], (3**layers + 1) // 2)
    problem = Masked(s_J[:, None], weight_J[:, None] / dim)
    return [
        masked_risk([fmpq(round(x * 10**DIGITS), 10**DIGITS) for x in theta_V], dim, context)
        for theta_V in best_by_layers(range(1, layers + 1), problem).values()
    ]


def masked_risk(theta: Sequence[fmpq], dim: int, context: int) -> fmpq:
    """Return E tr (1 - g(S))^2 / d."""
    squared = (1 - response(theta)) ** 2
    return mean_trace(covariance_moments(dim, context, squared.length()), squared) / dim
