"""ahn, Lemmas 5 and 6: under eq. (11) the loss (5) is the mean of Tr((I - M) Y_L^T Y_L (I - M)), with Y_L the
last row of Z_L when the query starts at its own label y_q instead of 0.

Lemma 6 says why: y_q moves no x, no other label, and enters the query's own label additively. Both hold
prompt by prompt, for any P and any Q with a zero last column: only through that column could y_q leave its
place.

B prompts, N context tokens, M = N + 1 with the query, D covariates, P = D + 1 token width, L layers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from icl.checks.verdict import Bound, Control, Finding, decide
from icl.errors import InputError, whole
from icl.models import Full, LinearTransformer, Parametrization, SparseAB
from icl.random import generator
from icl.tasks import LinearRegression, TokenPrompt

EPSILON = float(np.finfo(np.float64).eps)
MAX_LAYERS = 4
MAX_SCORES = 20_000_000  # attention scores: prompts times (context + 1)^2
PARTS = ("form_error", "lemma6_x", "lemma6_context_labels", "lemma6_query_label")


class Lemma5:
    """Settings: sizes, eigenvalues or covariance of x, number of prompts (`samples`), seed of all draws."""

    reference = "Lemma 5 and Lemma 6, eqs. (5), (11) and (57)"
    claim = (
        "Under eq. (11) the loss equals its trace form: the query may start at its own label instead of 0."
    )

    def __init__(
        self,
        dim: int = 5,
        context: int = 20,
        eigenvalues: Sequence[float] | None = None,
        covariance: Sequence[Sequence[float]] | str | None = None,
        layers: int = 3,
        seed: int = 0,
        samples: int = 256,
    ) -> None:
        self.dim, self.context = whole("check.dim", dim, 1), whole("check.context", context, 1)
        self.layers, self.seed = whole("check.layers", layers, 1), whole("check.seed", seed, 0)
        self.samples = whole("check.samples", samples, 1, 100_000)
        if self.layers > MAX_LAYERS:
            raise InputError(
                f"check.layers={layers}: at most {MAX_LAYERS}, terms have degree 3^layers in the tokens and "
                "rounding grows with them"
            )
        if self.samples * (self.context + 1) ** 2 > MAX_SCORES:
            raise InputError(
                f"check.context={context}: at most {int((MAX_SCORES / samples) ** 0.5) - 1} with {samples} "
                "samples, attention between all tokens takes samples * (context + 1)^2 numbers"
            )
        task = LinearRegression(dim, context, eigenvalues=eigenvalues, covariance=covariance, prefix="check")
        self.law = task.law([self.seed])

    def measure(self) -> Finding:
        prompt = self.law.token_prompts([generator(self.seed, "check")], self.samples)
        rng = generator(self.seed, "check", 1)
        sparse = self._errors(self._sparse(rng), prompt)
        outside = self._errors(self._full(rng, last_column=False), prompt)
        control = self._errors(self._full(generator(self.seed, "control"), last_column=True), prompt)
        max_error, outside_error = (
            float(np.max([errors[name] for name in PARTS])) for errors in (sparse, outside)
        )
        bound = self._rounding()
        return Finding(
            verdict=decide(max_error, bound),
            measured={
                "max_error": max_error,
                **sparse,
                "max_error_outside_11": outside_error,
            },
            bound=Bound(
                bound,
                "rounding: 2^-52 times the additions and products along one entry's path; errors are shares "
                "of the sum of the sizes of all terms of that entry",
            ),
            control=Control(
                "error of the trace form with random P and Q, the last column of Q not zero",
                control["form_error"],
                control["form_error"] > bound,
            ),
            notes=[
                "Eq. (11) is more than the lemmas need: they hold for any P and any Q whose last column is "
                f"zero (measured on random ones: {outside_error:.1e}), a nonzero last row of Q included.",
            ],
        )

    def _errors(self, model: Parametrization, prompt: TokenPrompt) -> dict[str, float]:
        P_LPP, Q_LPP = (stack.detach()[0, :, 0] for stack in model.stack())
        unlabelled_BPM = torch.cat([prompt.context_RBNP[0], prompt.query_RBP[0][:, None]], 1).mT
        labelled_BPM = unlabelled_BPM.clone()
        labelled_BPM[:, -1, -1] = prompt.target_RB[0]
        Z_BPM, Zbar_BPM = forward(P_LPP, Q_LPP, unlabelled_BPM), forward(P_LPP, Q_LPP, labelled_BPM)
        sizes_BPM = forward(P_LPP.abs(), Q_LPP.abs(), labelled_BPM.abs())
        expected_BPM = Z_BPM.clone()  # Lemma 6
        expected_BPM[:, -1, -1] += prompt.target_RB[0]
        errors_BPM = (Zbar_BPM - expected_BPM).abs() / sizes_BPM
        eq5_B = (
            LinearTransformer(model, path="tokens").predict(prompt)[0].detach() - prompt.target_RB[0]
        ).square()
        trace_B = trace_form(Zbar_BPM)
        return {
            "form_error": float(((eq5_B - trace_B).abs() / sizes_BPM[:, -1, -1].square()).max()),
            "lemma6_x": float(errors_BPM[:, :-1].max()),
            "lemma6_context_labels": float(errors_BPM[:, -1, :-1].max()),
            "lemma6_query_label": float(errors_BPM[:, -1, -1].max()),
            "risk_eq5": float(eq5_B.mean()),
            "risk_trace_form": float(trace_B.mean()),
        }

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

    def _rounding(self) -> float:
        """A layer multiplies three factors Z whose errors add up: (3^L - 1)/2 times one layer's own."""
        layer = 3 * (self.dim + 1) + (self.context + 1) + 3
        # Two computations, squared.
        return 4 * EPSILON * (layer * (3**self.layers - 1) // 2 + 1)


def forward(P_LPP: Tensor, Q_LPP: Tensor, Z_BPM: Tensor) -> Tensor:
    """Z <- Z + (1/N) P Z M Z^T Q Z, eq. (4) as printed: every token, the query last and masked out."""
    mask_M = torch.ones(Z_BPM.shape[-1], dtype=torch.float64)
    mask_M[-1] = 0
    for P_PP, Q_PP in zip(P_LPP, Q_LPP, strict=True):
        Z_BPM = Z_BPM + P_PP @ (Z_BPM * mask_M) @ (Z_BPM.mT @ Q_PP @ Z_BPM) / (Z_BPM.shape[-1] - 1)
    return Z_BPM


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
