"""Changes when two layers of eq. (8) swap: of the exact risk, of every prediction; and what rounding allows.

The law is whitened. An error is relative; its bound is 64 eps times what the terms would add up to with all
signs equal, over what they add up to. Orders are lists of layers.

R replicas (the original, then each order), B prompts, L layers, D covariates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from icl.checks.numbers import Numbers, tried
from icl.checks.rounding import ROUNDING
from icl.models import LinearTransformer, SparseA
from icl.random import generator
from icl.tasks import GramPrompt, LinearRegressionLaw, TokenPrompt
from icl.theory.ahn.invariant_risk import InvariantRisk
from icl.theory.expected_traces import sparse_a_risk

SOURCE = (
    "rounding: 64 eps times what the terms would add up to with all signs equal, over what they add up to"
)
MEANINGS = {
    "polynomial_error": "largest relative change of the exact risk on S under a swap, by the polynomial",
    "gram_error": "largest change of a prediction under a swap, by the Gram path, over their root mean "
    "square",
    "token_error": "largest change of a prediction under a swap, by the token path, over their root mean "
    "square",
    "words_error": "largest relative change of the exact risk under a swap, by words in S",
}

Array = NDArray[np.float64]
Change = tuple[float, float]  # an error and its bound


def transpositions(layers: int) -> list[list[int]]:
    orders = []
    for i, j in combinations(range(layers), 2):
        order = list(range(layers))
        order[i], order[j] = j, i
        orders.append(order)
    return orders


def on_the_polynomial(law: LinearRegressionLaw, a_L: Array) -> Change:
    """Compare the exact risk on S, A_l = a_l Sigma^{-1}."""
    risk = InvariantRisk(law.dim, law.context_R[0], len(a_L))
    before, orders = risk.value(a_L.tolist()), transpositions(len(a_L))
    error = max(abs(risk.value(a_L[order].tolist()) / before - 1) for order in orders)
    return error, ROUNDING * growth(law, a_L) ** 0.5


def on_predictions(
    law: LinearRegressionLaw, A_LDD: Tensor, a_L: Array, prompt: GramPrompt | TokenPrompt
) -> Change:
    """Largest change of a prediction, in units of the batch's predictions; a_L sizes the terms."""
    predictions_RB = torch.stack(
        [_predict(A, prompt) for A in (A_LDD, *(A_LDD[order] for order in transpositions(len(A_LDD))))]
    )
    size = float(predictions_RB[0].square().mean().sqrt())
    S_BDD = (prompt.gram() if isinstance(prompt, TokenPrompt) else prompt).gram_RBPP[0, :, :-1, :-1]
    task_root_DD = law.task_root_RDD[0]
    s_B = torch.linalg.eigvalsh(task_root_DD.mT @ S_BDD @ task_root_DD)[:, -1]
    # |w| |x| prod (1 + a_l s) bounds all terms of a prediction; whitened |w| |x| is about D.
    terms = law.dim * float((1 + torch.tensor(a_L)[:, None] * s_B).prod(0).max())
    error = float((predictions_RB - predictions_RB[0]).abs().max())
    return error / size, ROUNDING * terms / size


def on_words(law: LinearRegressionLaw, A_LDD: Tensor, a_L: Array) -> Change:
    """Compare the exact risk at any A, few layers."""
    orders = [list(range(len(A_LDD))), *transpositions(len(A_LDD))]
    return on_risks(law, [A_LDD[order] for order in orders], a_L)


def on_risks(law: LinearRegressionLaw, stacks: Sequence[Tensor], a_L: Array) -> Change:
    """Return the most by which the exact risk of any stack differs from the first's; a_L sizes the terms."""
    Sigma, Sigma_w = law.Sigma_RDD[0], law.Sigma_w_RDD[0]
    risk_R = sparse_a_risk(torch.stack(list(stacks)), Sigma, Sigma_w, law.context_R[0])
    return float((risk_R / risk_R[0] - 1).abs().max()), ROUNDING * growth(law, a_L)


def growth(law: LinearRegressionLaw, a_L: Array) -> float:
    """Risk with all terms made positive (at -A) over the risk."""
    risk = InvariantRisk(law.dim, law.context_R[0], len(a_L))
    return risk.value((-a_L).tolist()) / risk.value(a_L.tolist())


def numbers(changes: Mapping[str, Change]) -> list[Numbers]:
    """Compare every change with its bound."""
    return [
        tried(**{name: error}).means(MEANINGS[name]).at_most(bound, SOURCE)
        for name, (error, bound) in changes.items()
    ]


def off_s(A_LDD: Tensor, seed: int) -> Tensor:
    """Return these layers with a random matrix added to A_0."""
    noise_DD = torch.tensor(generator(seed, "control").standard_normal(A_LDD.shape[1:]))
    return torch.cat([A_LDD[:1] + 0.3 * noise_DD, A_LDD[1:]])


def _predict(A_LDD: Tensor, prompt: GramPrompt | TokenPrompt) -> Tensor:
    family = SparseA(A_LDD.shape[-1], len(A_LDD))
    family.load({"A": A_LDD[None]})
    with torch.no_grad():
        path = "tokens" if isinstance(prompt, TokenPrompt) else "gram"
        return LinearTransformer(family, path).predict(prompt)[0]
