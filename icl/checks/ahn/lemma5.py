"""ahn, Lemmas 5 and 6: under eq. (11) the loss (5) is the mean of Tr((I - M) Y_L^T Y_L (I - M)), with Y_L the
last row of Z_L when the query starts at its own label y_q instead of 0.

Lemma 6 says why: y_q moves no x, no other label, and enters the query's own label additively. Both hold
prompt by prompt, for any P and any Q with a zero last column: only through that column could y_q leave its
place.

B prompts, N context tokens, M = N + 1 with the query, D covariates, P = D + 1 token width, L layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from icl.checks import attention
from icl.checks.ahn.support.settings import PromptSettings
from icl.checks.numbers import finding, tried
from icl.checks.rounding import PATH, path_rounding
from icl.checks.settings import integer
from icl.checks.verdict import Control, Finding
from icl.models import Full, LinearTransformer, Parametrization, SparseAB
from icl.random import generator
from icl.tasks import TokenPrompt

PARTS = ("form_error", "lemma6_x", "lemma6_context_labels", "lemma6_query_label")


@dataclass(eq=False)
class Lemma5(PromptSettings):
    """Settings: of the prompts, their number (`samples`), and the layers."""

    layers: int = integer(3, 1, 4, "terms have degree 3^layers in the tokens and rounding grows with them")
    samples: int = integer(256, 1, 100_000)

    reference = "Lemma 5 and Lemma 6, eqs. (5), (11) and (57)"
    claim = (
        "Under eq. (11) the loss equals its trace form: the query may start at its own label instead of 0."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        attention.affordable(self.samples, self.context)

    def measure(self) -> Finding:
        prompt = self.law.token_prompts([generator(self.seed, "check")], self.samples)
        rng = generator(self.seed, "check", 1)
        sparse = errors(self._sparse(rng), prompt)
        outside = errors(self._full(rng, last_column=False), prompt)
        max_error, outside_error = (float(np.max([e[part] for part in PARTS])) for e in (sparse, outside))
        bound = path_rounding(4 * attention.stack_operations(self.dim, self.context, self.layers))
        control = errors(self._full(generator(self.seed, "control"), last_column=True), prompt)["form_error"]
        return finding(
            [
                tried(max_error=max_error).at_most(bound, PATH),
                # The lemmas hold of any such P and Q: of (11) alone much of them is zero.
                tried(max_error_outside_11=outside_error).at_most(bound, PATH),
                tried(**sparse),
            ],
            Control(
                "error of the trace form with random P and Q, the last column of Q not zero",
                control,
                control > bound,
            ),
            remarks=[
                "Eq. (11) is more than the lemmas need: they hold for any P and any Q whose last column is "
                f"zero (measured on random ones: {outside_error:.1e}), a nonzero last row of Q included."
            ],
        )

    def _sparse(self, rng: np.random.Generator) -> Parametrization:
        model = SparseAB(self.dim, self.layers)
        scales = {"A": float(self.law.Sigma_RDD[0].trace()), "B": 2.0}
        shapes = {name: (1, *shape) for name, shape in model.shapes().items()}
        model.load({name: _unit(rng, shape) / scales[name] for name, shape in shapes.items()})
        return model

    def _full(self, rng: np.random.Generator, last_column: bool) -> Parametrization:
        """Random P and Q with about the effect of `_sparse`; (x, y) has size 2 tr(Sigma), as w ~ N(0, I)."""
        model = Full(self.dim, self.layers)
        shape = (1, *model.shapes()["P"])
        Q_RLPP = _unit(rng, shape) / float(2 * self.law.Sigma_RDD[0].trace())
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
    """Over the prompts, with its standard error."""
    return {name: float(loss_B.mean()), f"{name}_stderr": float(loss_B.std() / len(loss_B) ** 0.5)}


def trace_form(Z_BPM: Tensor) -> Tensor:
    """Tr((I - M) Y^T Y (I - M)) for Y the last row of Z, per prompt."""
    Y_B1M = Z_BPM[:, -1:]
    rest_MM = torch.zeros(Z_BPM.shape[-1], Z_BPM.shape[-1], dtype=torch.float64)
    rest_MM[-1, -1] = 1
    return (rest_MM @ Y_B1M.mT @ Y_B1M @ rest_MM).diagonal(dim1=-2, dim2=-1).sum(-1)


def _unit(rng: np.random.Generator, shape: Sequence[int]) -> Tensor:
    """Random matrices of Frobenius norm one."""
    noise = torch.from_numpy(rng.standard_normal(tuple(shape)))
    return noise / noise.norm(dim=(-2, -1), keepdim=True)
