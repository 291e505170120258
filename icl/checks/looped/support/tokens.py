"""Evidence from prompts drawn as tokens, of Sigma itself: what the shared layer does to every one of them.

B prompts, N context tokens, D covariates.
"""

from __future__ import annotations

import numpy as np
import torch

from icl.checks.numbers import Numbers, tried
from icl.checks.rounding import ROUNDING
from icl.models import LinearTransformer, SparseA
from icl.random import generator
from icl.tasks import LinearRegressionLaw
from icl.theory.looped.weighted import Array

PROMPTS = 64
ENTRIES = 2_000_000  # of a prompt's attention matrices, all together
SOURCE = (
    "2^-52 times 64 (n + d) L operations times the condition number of Sigma's root, relative to the sum "
    "of the sizes of all terms"
)


def model_of(A_DD: Array, law: LinearRegressionLaw, layers: int, path: str = "tokens") -> LinearTransformer:
    """Return the shared layer that is A in whitened coordinates: root^-T A root^-1 in those of the tokens."""
    inverse_DD = torch.linalg.inv(law.root_RDD[0])
    family = SparseA(law.dim, layers, path=path, shared=True)
    family.load({"A": (inverse_DD.mT @ torch.from_numpy(np.array(A_DD)) @ inverse_DD)[None, None]})
    return LinearTransformer(family.requires_grad_(False))


def paths_error(A_DD: Array, law: LinearRegressionLaw, layers: int, seed: int) -> Numbers:
    """Return the largest difference between attention over tokens and w^T (I - G A)^L x in whitened
    coordinates, over rounding's."""
    count = max(1, min(PROMPTS, ENTRIES // (law.context_R[0] + 1) ** 2))
    prompt = law.token_prompts([generator(seed, "check", 2)], count)
    root_DD = law.root_RDD[0].numpy()
    D = law.dim
    x_BND = prompt.context_RBNP[0, :, :, :D].numpy()
    y_BN, query_BD = prompt.context_RBNP[0, :, :, D].numpy(), prompt.query_RBP[0, :, :D].numpy()
    predicted_B = model_of(A_DD, law, layers).predict(prompt)[0].numpy()
    white_BND, white_query_BD = (
        np.linalg.solve(root_DD, z.swapaxes(-1, -2)) for z in (x_BND, query_BD[:, None])
    )
    n = x_BND.shape[1]
    G_BDD = white_BND @ white_BND.swapaxes(-1, -2) / n
    cross_BD = (white_BND @ y_BN[..., None])[
        ..., 0
    ] / n  # G w: the error is w^T K x, the prediction less w^T x
    series_BD, term_BD, size_BD = np.zeros_like(cross_BD), cross_BD, np.zeros_like(cross_BD)
    size_term_BD = np.abs(white_BND) @ np.abs(y_BN)[..., None] / n
    size_G_BDD = np.abs(white_BND) @ np.abs(white_BND).swapaxes(-1, -2) / n
    size_term_BD = size_term_BD[..., 0]
    for _ in range(layers):  # w^T (I - (I - G A)^L) = sum_k (G w)^T A (I - G A)^k
        step_BD = term_BD @ A_DD
        size_step_BD = size_term_BD @ np.abs(A_DD)
        series_BD, size_BD = series_BD + step_BD, size_BD + size_step_BD
        term_BD = term_BD - (step_BD[:, None] @ G_BDD)[:, 0]
        size_term_BD = size_term_BD + (size_step_BD[:, None] @ size_G_BDD)[:, 0]
    expected_B = (series_BD * white_query_BD[..., 0]).sum(1)
    scale_B = (size_BD * np.abs(white_query_BD[..., 0])).sum(1)
    condition = float(torch.linalg.cond(law.root_RDD[0]))
    bound = ROUNDING * (n + D) * layers * condition
    worst = float((np.abs(predicted_B - expected_B) / scale_B).max())
    return (
        tried(paths_error=worst)
        .means(
            "largest difference of attention over tokens of Sigma from the whitened formula, relative to "
            "its terms"
        )
        .at_most(bound, SOURCE, otherwise="undecided")
    )
