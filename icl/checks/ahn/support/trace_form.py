"""The trace form of the loss (ahn, Lemma 5) and Z_L entry by entry (Lemma 6), on random stacks.

B prompts, N context tokens, M = N + 1 with the query, D covariates, P = D + 1 token width, L layers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from icl.checks import attention
from icl.models import Full, LinearTransformer, Parametrization, SparseAB
from icl.tasks import LinearRegressionLaw, TokenPrompt


def sparse_model(law: LinearRegressionLaw, layers: int, rng: np.random.Generator) -> Parametrization:
    model = SparseAB(law.dim, layers)
    scales = {"A": float(law.Sigma_RDD[0].trace()), "B": 2.0}
    shapes = {name: (1, *shape) for name, shape in model.shapes().items()}
    model.load({name: _unit(rng, shape) / scales[name] for name, shape in shapes.items()})
    return model


def full_model(
    law: LinearRegressionLaw, layers: int, rng: np.random.Generator, last_column: bool
) -> Parametrization:
    """Random P and Q with about the effect of `sparse_model`; (x, y) has size 2 tr(Sigma), as w ~ N(0, I)."""
    model = Full(law.dim, layers)
    shape = (1, *model.shapes()["P"])
    Q_RLPP = _unit(rng, shape) / float(2 * law.Sigma_RDD[0].trace())
    Q_RLPP[..., -1] *= last_column
    model.load({"P": _unit(rng, shape), "Q": Q_RLPP})
    return model


def errors(model: Parametrization, prompt: TokenPrompt) -> dict[str, float]:
    """Largest errors of the trace form (Lemma 5) and of Z_L entry by entry (Lemma 6), and both risks."""
    P_LPP, Q_LPP = (stack.detach()[0, :, 0] for stack in model.stack())
    y_B = prompt.target_RB[0]
    Z_BPM = attention.tokens_of(prompt)
    labelled_BPM = Z_BPM.clone()
    labelled_BPM[:, -1, -1] = y_B
    last_BPM = attention.every_layer(P_LPP, Q_LPP, labelled_BPM)[-1]
    sizes_BPM = attention.every_layer(P_LPP.abs(), Q_LPP.abs(), labelled_BPM.abs())[-1]
    expected_BPM = attention.every_layer(P_LPP, Q_LPP, Z_BPM)[-1].clone()  # Lemma 6
    expected_BPM[:, -1, -1] += y_B
    errors_BPM = (last_BPM - expected_BPM).abs() / sizes_BPM
    eq5_B = (LinearTransformer(model, path="tokens").predict(prompt)[0].detach() - y_B).square()
    trace_B = trace_form(last_BPM)
    return {
        "form_error": float(((eq5_B - trace_B).abs() / sizes_BPM[:, -1, -1].square()).max()),
        "lemma6_x": float(errors_BPM[:, :-1].max()),
        "lemma6_context_labels": float(errors_BPM[:, -1, :-1].max()),
        "lemma6_query_label": float(errors_BPM[:, -1, -1].max()),
        **_mean("risk_eq5", eq5_B),
        **_mean("risk_trace_form", trace_B),
    }


def _mean(name: str, loss_B: Tensor) -> dict[str, float]:
    """Return the mean over the prompts, with its standard error."""
    return {name: float(loss_B.mean()), f"{name}_stderr": float(loss_B.std() / len(loss_B) ** 0.5)}


def trace_form(Z_BPM: Tensor) -> Tensor:
    """Return Tr((I - M) Y^T Y (I - M)) for Y the last row of Z, per prompt."""
    Y_B1M = Z_BPM[:, -1:]
    rest_MM = torch.zeros(Z_BPM.shape[-1], Z_BPM.shape[-1], dtype=torch.float64)
    rest_MM[-1, -1] = 1
    return (rest_MM @ Y_B1M.mT @ Y_B1M @ rest_MM).diagonal(dim1=-2, dim2=-1).sum(-1)


def _unit(rng: np.random.Generator, shape: Sequence[int]) -> Tensor:
    """Random matrices of Frobenius norm one."""
    noise = torch.from_numpy(rng.standard_normal(tuple(shape)))
    return noise / noise.norm(dim=(-2, -1), keepdim=True)
