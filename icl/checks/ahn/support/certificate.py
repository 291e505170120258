"""A lower bound on the risk of eq. (8) over all A, and the certificate that it is one.

D covariates, L layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product

import torch
from torch import Tensor

from icl.random import generator
from icl.theory.ahn.equivariant_bound import equivariant_optimum
from icl.theory.expected_traces import expected_word
from icl.theory.quadratic import EPSILON

CERTIFIED = "rounding: 2^-52 times the operations of one word times the sum of the sizes of all terms"


def certified_bound(dim: int, context: int, depth: int, seed: int) -> tuple[float, float, float]:
    """Return the least E tr(K K^T) of all K = I + S T(S), how far E tr(K K_A^T) is from it for a random A,
    which is 0 where K attains it, and what rounding can make of that."""
    bound, coefficients = equivariant_optimum(dim, context, depth)
    rng = generator(seed, "check", depth)
    A_LDD = torch.from_numpy(rng.standard_normal((depth, dim, dim))) / (2 * dim**0.5)
    products = [(c, _correlation(A_LDD, *term, context)) for term, c in coefficients.items()]
    sizes = [(c, _correlation(-A_LDD.abs(), *term, context)) for term, c in coefficients.items()]
    alone = _correlation(A_LDD, 0, (), context), _correlation(-A_LDD.abs(), 0, (), context)
    found = alone[0] + sum(float(c) * product for c, product in products)
    size = alone[1] + sum(abs(float(c)) * product for c, product in sizes)
    operations = 4 * depth * dim + 10395 + 64 + dim**depth
    return float(bound), abs(found - float(bound)), EPSILON * operations * size


def _correlation(A_LDD: Tensor, power: int, traces: Sequence[int], context: int) -> float:
    """E tr(S^power K_A^T) prod_i tr(S^traces_i), K_A = (I - S A_0) ... (I - S A_{L-1}), by words.

    tr(S^m) I is the sum of E_ij S^m E_ji over all i and j, E_ij one entry of the identity.
    """
    D, total = A_LDD.shape[-1], 0.0
    identity_DD, unit_DDDD = torch.eye(D).double(), torch.eye(D * D).double().view(D, D, D, D)
    # i, j_1 .. j_r of E_{i j_1} S^{m_1} E_{j_1 j_2} .. S^{m_r} E_{j_r i}
    places = torch.cartesian_prod(*[torch.arange(D)] * (1 + len(traces))).view(-1, 1 + len(traces)).T
    between = [unit_DDDD[i, j] for i, j in pairwise([*places, places[0]])] if traces else [identity_DD]
    powers = [power, *traces]
    for chosen in product((False, True), repeat=len(A_LDD)):
        layers = [A_DD.mT for A_DD, taken in zip(A_LDD, chosen, strict=True) if taken][::-1]
        word = [
            matrix
            for m, after in zip(powers, between, strict=True)
            for matrix in ([identity_DD] * (m - 1) + [after])
        ]
        if power == 0:
            word = []
        if layers:
            word = (
                [*word[:-1], word[-1] @ layers[0], *layers[1:], identity_DD]
                if word
                else [*layers[1:], layers[0]]
            )
        of_one = expected_word(word, identity_DD, context).sum() if word else torch.tensor(float(D))
        total += (-1) ** len(layers) * float(of_one)
    return total
