"""One layer of linear attention on prompts drawn as tokens, with which the formula of the exact risk, the
library's sampler and its two paths are compared.

B prompts, D covariates, P = D + 1 token width, L = H = 1.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from icl.checks.ahn.support.linear_layer import LinearLayer, layer_of
from icl.checks.numbers import Numbers, tried
from icl.checks.sequential import Comparison
from icl.checks.token_evidence import (
    PRECISION,
    affordable_context,
    by_gram,
    by_tokens,
    compare_eq_8,
    compare_with_samples,
    draw_tokens,
    numbers_of,
    paths_error,
)
from icl.models import Full, SparseA
from icl.tasks import LinearRegressionLaw
from icl.theory.closed_forms import theorem1_preconditioner

PATHS = "rounding: 2^-52 times a prediction's additions and products, as a share of its terms"
COMPARED = {"token": "the exact risk of eq. (8)", "free": "the exact risk at random P and Q"}
FREE_PRECISION = 0.006  # at weights for which nothing but the query is integrated


def numbers_on_tokens(law: LinearRegressionLaw, rng: np.random.Generator) -> tuple[list[Numbers], list[str]]:
    """Compare the risk's form, and the library's predictions by both paths, with drawn prompts; with a note
    where their context is cut."""
    wanted, context = law.context_R[0], affordable_context(law.context_R[0], law.dim)
    law = replace(law, context_R=(context,))
    A_DD = theorem1_preconditioner(law.Sigma_RDD[0], context)
    risks = compare_risks(law, A_DD, rng)
    families = {"sparse_paths_error": SparseA(law.dim, 1), "paths_error": Full(law.dim, 1)}
    paths = [
        tried(**{name: error})
        .means("largest difference of the library's predictions from attention written out, relative")
        .at_most(bound, PATHS)
        for name, family in families.items()
        for error, bound in [paths_error(family, law, rng)]
    ]
    note = (
        f"The formula of the risk is compared with tokens at context {context}: longer prompts take too long."
    )
    numbers = [
        *paths,
        *(comparison.numbers(prefix, COMPARED[prefix]) for prefix, comparison in risks.items()),
    ]
    return numbers, [note] if context < wanted else []


def compare_risks(law: LinearRegressionLaw, A_DD: Tensor, rng: np.random.Generator) -> dict[str, Comparison]:
    """Compare `token`: at A of eq. (8) and at another, with the task integrated; `free`: at any P and Q, by
    tokens and by the library's own Wishart draws and Gram path.
    """
    D, layer = law.dim, LinearLayer(law.Sigma_RDD[0], law.context_R[0])
    stacks = [A_DD[None], (A_DD + 0.5 * A_DD @ torch.from_numpy(rng.standard_normal((D, D))) / D**0.5)[None]]
    P_PP, Q_PP = _any_weights(law.Sigma_RDD[0], rng)
    family = Full(D, 1)
    family.load({"P": P_PP[None, None], "Q": Q_PP[None, None]})

    def of_any(batch: int) -> list[Tensor]:
        tokens = draw_tokens(law, rng, batch)
        return [
            by_tokens(law, P_PP[None, None], Q_PP[None, None], tokens),
            by_gram(law, family, rng, batch),
        ]

    numbers, free_risk = 2 * numbers_of(law) + (D + 1) ** 3, layer.at(P_PP, Q_PP)[0]
    formula = [layer.at(*layer_of(A_LDD[0]))[0] for A_LDD in stacks]
    return {
        "token": compare_eq_8(law, stacks, formula, rng, (PRECISION, 2 * PRECISION)),
        "free": compare_with_samples(of_any, [free_risk, free_risk], numbers, FREE_PRECISION),
    }


def _any_weights(Sigma: Tensor, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
    """P and Q of about the effect of (6): covariates and labels enter with equal weight."""
    width = len(Sigma) + 1
    size_P = torch.cat([Sigma.diagonal(), Sigma.trace()[None]]).sqrt()  # of a token's entries
    P_PP, Q_PP = (torch.from_numpy(rng.standard_normal((width, width))) / width**0.5 for _ in range(2))
    return P_PP * size_P[-1] / size_P, Q_PP / torch.outer(size_P, size_P)
