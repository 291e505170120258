"""Prompts as tokens, compared with the formulas of icl.theory.dynamical_system.

Two ways, both by the task's own tokens. On a grid: y = L xi with L L^T = C, C by Lemma D.2's powers, xi on
the product of Gauss rules of four nodes, which integrate every moment of degree 6 exactly: all pairings, the
window and the hidden target, to rounding, on short sequences. By sampling, at the settings given: simulated
sequences of drawn systems, their losses over what the formula says of their system.

B prompts, Q systems, T observations, s window, P = s + 1, N context tokens.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import torch
from numpy.polynomial import Polynomial
from torch import Tensor

from icl.checks.lds.support.population import covariances_of
from icl.checks.lds.support.sequences import law_of
from icl.checks.numbers import Numbers, tried
from icl.checks.sequential import Comparison, compare
from icl.checks.token_evidence import last_entries
from icl.random import generator
from icl.tasks import DynamicalSystemLaw, TokenPrompt
from icl.tasks.dynamical_system import HALF_WIDTH, Systems, token_prompts
from icl.theory.dynamical_system import (
    Moments,
    coefficients,
    conditional_moments,
    covariances_of_systems,
    half_squared_error,
    pairs,
)
from icl.theory.quadratic import EPSILON

NODES = 4  # a Gauss rule exact to degree 7
SEQUENCES = 16  # of each drawn system
TRIPLES = 12  # products of three covariances whose means are written out


def lemma_d_2(A_DD: Tensor, c_D: Tensor, Sigma_w_DD: Tensor, noise: float, start: float, T: int) -> Tensor:
    """Return eq. (26) given A and c, term by term: C_ij for i, j = 1 .. T."""
    rows_TD = torch.stack([c_D @ torch.linalg.matrix_power(A_DD, i) for i in range(T + 1)])
    started, driven = (start * rows_TD @ rows_TD.T).tolist(), (rows_TD @ Sigma_w_DD @ rows_TD.T).tolist()
    return torch.tensor(
        [
            [
                started[i][j] + sum(driven[i - 1 - k][j - 1 - k] for k in range(min(i, j))) + noise * (i == j)
                for j in range(1, T + 1)
            ]
            for i in range(1, T + 1)
        ],
        dtype=torch.float64,
    )


def moments_on_a_grid(C_TT: Tensor, window: int) -> Moments:
    """Return E over y ~ N(0, C) of the tokens' own products, by Gauss and Hermite's rule in T variables."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    T = len(C_TT)
    grid_BT = torch.from_numpy(np.stack(np.meshgrid(*[nodes] * T, indexing="ij"), -1).reshape(-1, T))
    weight_B = torch.ones((), dtype=torch.float64)
    for _ in range(T):
        weight_B = torch.outer(weight_B.flatten(), torch.from_numpy(weights / weights.sum())).flatten()
    variance_T, direction_TT = torch.linalg.eigh(C_TT)  # a root, of a singular C as well
    root_TT = direction_TT * variance_T.clamp(min=0).sqrt()
    prompt = token_prompts((grid_BT @ root_TT.T)[None], window)
    z_BNP, target_B = prompt.context_RBNP[0], prompt.target_RB[0]
    a_S, b_S = pairs(window)
    gram_BS = (z_BNP[..., a_S] * z_BNP[..., b_S]).mean(1)
    feature_BE = (prompt.query_RBP[0, :, :window, None] * gram_BS[:, None]).flatten(1)
    shape = (window, len(a_S))
    return Moments(
        (feature_BE.T @ (weight_B[:, None] * feature_BE)).view(*shape, *shape),
        (feature_BE.T @ (weight_B * target_B)).view(shape),
        weight_B @ target_B.square(),
    )


def grid_error(law: DynamicalSystemLaw, seed: int) -> Numbers:
    """Return the largest difference of the conditional moments from the grid's at a system of the law, as a
    share of sqrt(form's diagonal entries): rounding, or a formula is wrong."""
    window, T = law.window, min(law.length, max(law.window + 3, 5))
    short = law_of(law.setting, window, T, law.states, seed, process_noise=law.process_noise)
    drawn = short.systems([generator(seed, "check", 1)], 1)
    A_DD, c_D, Sigma_w_DD = drawn.A_RBDD[0, 0], drawn.c_RBD[0, 0], law.Sigma_w_RDD[0]
    noise, start = law.observation_noise, law.initial_variance
    grid = moments_on_a_grid(lemma_d_2(A_DD, c_D, Sigma_w_DD, noise, start, T), window)
    C_BTT = covariances_of_systems(A_DD[None], c_D[None], Sigma_w_DD, noise, start, T)
    found = conditional_moments(C_BTT, window)
    E = grid.linear_KS.numel()
    scale_E = grid.form_KSKS.reshape(E, E).diagonal().sqrt()
    form_error = (found.form_KSKS[0] - grid.form_KSKS).reshape(E, E).abs() / torch.outer(scale_E, scale_E)
    linear_error = (found.linear_KS[0] - grid.linear_KS).flatten().abs() / (scale_E * grid.constant.sqrt())
    constant_error = (found.constant[0] - grid.constant).abs() / grid.constant
    error = max(float(part.max()) for part in (form_error, linear_error, constant_error))
    # A chain of products of six, each y a sum of T terms with a root's entries; 4^T addends.
    source = "rounding of a product of six sums over the grid"
    return (
        tried(grid_error=error)
        .means("largest difference of the moments by formula and by Gauss rules over tokens, relative")
        .at_most(EPSILON * 64 * T * NODES, source)
    )


def means_error(law: DynamicalSystemLaw, seed: int) -> Numbers:
    """Return the largest error of E[C_ij C_kl C_mn] over the systems of a law with independent modes, at
    TRIPLES random index triples, as a share of the sizes of the rules' terms.

    The other way: C_ij = noise 1{i=j} + r sum_m b_m g_ij(v_m), each g a polynomial in v with coefficients of
    one sign; products multiplied out, v^n integrated, and the moments of r and b written down.
    """
    exact = law.covariances
    assert exact is not None
    index_K6 = generator(seed, "check", 2).integers(law.length, size=(TRIPLES, 6))
    error = 0.0
    for row in index_K6.tolist():
        entries_3Q = torch.stack([exact.covariance_QTT[:, i, j] for i, j in (row[:2], row[2:4], row[4:])])
        found, size = (w_Q @ M.prod(0) for w_Q, M in (
            (exact.weight_Q, entries_3Q), (exact.weight_Q.abs(), entries_3Q.abs())
        ))  # fmt: skip
        written = _mean_of_product(law, [(row[0], row[1]), (row[2], row[3]), (row[4], row[5])])
        error = max(error, float(abs(found - written) / size))
    source = "rounding: 2^-52 times 36 T operations and 256 of the quadrature weights, relative to the terms"
    return (
        tried(means_error=error)
        .means(
            "largest difference of the mean moments by quadrature and in closed form, relative to their terms"
        )
        .at_most(EPSILON * (36 * law.length + 256), source)
    )


def _mean_of_product(law: DynamicalSystemLaw, entries: list[tuple[int, int]]) -> float:
    """Return E[prod of C_ij], places i, j from 0, in setting (a) or (b) with uniform eigenvalues."""
    d, half = law.states, HALF_WIDTH**2
    one = [1.0, half / 3, half**2 / 5, half**3 / 7]  # E[c_1^(2k)]
    radius = [
        1.0,
        d * one[1],
        d * one[2] + d * (d - 1) * one[1] ** 2,
        d * one[3] + 3 * d * (d - 1) * one[2] * one[1] + d * (d - 1) * (d - 2) * one[1] ** 3,
    ]
    total = 0.0
    for chosen in itertools.product((False, True), repeat=3):  # from each C its noise, or its modes
        factor, polynomials = 1.0, []
        for (i, j), modes in zip(entries, chosen, strict=True):
            if modes:
                polynomials.append(_of_one_mode(law, i + 1, j + 1))
            else:
                factor *= law.observation_noise * (i == j)
        k = len(polynomials)
        if law.setting == "a":
            mean = sum(math.perm(d, len(blocks)) * _integral(polynomials, blocks) for blocks in partitions(k))
        else:
            # E[prod of b_m^(n_m)] = prod of (2 n_m - 1)!! over d (d + 2) ...
            below = math.prod(d + 2 * i for i in range(k))
            mean = radius[k] * sum(
                math.perm(d, len(blocks))
                * math.prod(math.prod(range(1, 2 * len(block), 2)) for block in blocks)
                * _integral(polynomials, blocks)
                for blocks in partitions(k)
            ) / below  # fmt: skip
        total += factor * mean
    return total


def _of_one_mode(law: DynamicalSystemLaw, i: int, j: int) -> Polynomial:
    """Return g_ij(v) = start v^(i+j) + process sum_(k<=min(i,j)) v^(i+j-2k)."""
    coefficients = np.zeros(i + j + 1)
    coefficients[i + j] = law.initial_variance
    coefficients[[i + j - 2 * k for k in range(1, min(i, j) + 1)]] += law.process_noise
    return Polynomial(coefficients)


def _integral(polynomials: list[Polynomial], blocks: list[list[int]]) -> float:
    """Return the product over blocks of E over v of the block's polynomials."""
    value = 1.0
    for block in blocks:
        product = math.prod([polynomials[place] for place in block], start=Polynomial([1.0]))
        entries: list[float] = product.coef.tolist()
        value *= sum(entry / (n + 1) for n, entry in enumerate(entries) if n % 2 == 0)
    return value


def partitions(count: int) -> list[list[list[int]]]:
    """Return the partitions of 0 .. count - 1 into blocks."""
    if count == 0:
        return [[]]
    found = []
    for blocks in partitions(count - 1):
        found.append([*blocks, [count - 1]])
        found += [[*blocks[:i], [*block, count - 1], *blocks[i + 1 :]] for i, block in enumerate(blocks)]
    return found


def losses_on_tokens(
    law: DynamicalSystemLaw, points: list[tuple[Tensor, Tensor]], seed: int, systems: int
) -> Comparison:
    """Compare half squared errors of heads (b, a_KP) on simulated prompts, each over its mean given the
    system, with 1. One row for each system, the mean over its sequences."""
    step = itertools.count()

    def draw(count: int) -> Tensor:
        rng = generator(seed, "eval", next(step))
        one = law.systems([rng], count)
        A_QDD, c_QD = one.A_RBDD[0], one.c_RBD[0]
        many = Systems(
            A_QDD.repeat_interleave(SEQUENCES, 0)[None], c_QD.repeat_interleave(SEQUENCES, 0)[None]
        )
        prompt = token_prompts(law.observations(many, [rng]), law.window)
        C_QTT = covariances_of_systems(
            A_QDD, c_QD, law.Sigma_w_RDD[0], law.observation_noise, law.initial_variance, law.length
        )
        given = conditional_moments(C_QTT, law.window)
        rows = []
        for b_P, a_KP in points:
            off_B = predict_on_tokens(b_P, a_KP, prompt) - prompt.target_RB[0]
            loss_QB = off_B.square().view(count, SEQUENCES) / 2
            rows.append(loss_QB.mean(1) / half_squared_error(given, coefficients(b_P, a_KP)))
        return torch.stack(rows, 1)

    ones_K = torch.ones(len(points), dtype=torch.float64)
    return compare(draw, ones_K, 500, max(systems, 2), "sequences simulated")


def predict_on_tokens(b_P: Tensor, a_KP: Tensor, prompt: TokenPrompt) -> Tensor:
    """Return (B,) answers of one head, P = W_V^T and Q = W_QK^T, token by token."""
    P = len(b_P)
    P_PP, Q_PP = torch.zeros(2, P, P, dtype=torch.float64)
    P_PP[-1], Q_PP[:, : len(a_KP)] = b_P, a_KP.T
    query_B1P = prompt.query_RBP[0, :, None]
    return last_entries(P_PP[None, None], Q_PP[None, None], prompt.context_RBNP[0], query_B1P)[:, 0]


def absolute(prompt: TokenPrompt) -> TokenPrompt:
    """Drop all signs, for the sizes of an answer's terms."""
    return replace(prompt, context_RBNP=prompt.context_RBNP.abs(), query_RBP=prompt.query_RBP.abs())


def fresh_covariances(law: DynamicalSystemLaw, seed: int, step: int, systems: int) -> Tensor:
    """Return C of drawn systems, of a stream that no average uses."""
    return covariances_of(law, generator(seed, "control", step), systems)
