"""Lemma 4 of ahn: on S = {A_l = a_l Sigma^{-1}} of (8) the risk does not change when two layers swap.

Measured three ways: by the exact polynomial; prompt by prompt, since on S the prediction itself is unchanged,
through the Gram path and the token path; and by words (L <= 3), which also give the exact change off S.

T transpositions, R replicas (the original, then each transposition), B prompts, L layers, D covariates.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import torch
from torch import Tensor

from icl.checks.verdict import Bound, Control, Finding, decide, joint
from icl.errors import InputError, whole
from icl.models import LinearTransformer, SparseA
from icl.random import generator
from icl.tasks import GramPrompt, LinearRegression, TokenPrompt
from icl.theory.polynomial import InvariantRisk
from icl.theory.words import sparse_a_risk

ROUNDING = 64 * torch.finfo(torch.float64).eps
MAX_LAYERS = 12
MAX_DIM = 32
WORDS_LAYERS = 3
WORDS_DIM = 10


class Lemma4:
    reference = "Lemma 4"
    claim = (
        "With w ~ N(0, Sigma^-1) and every A_l a multiple of Sigma^-1 "
        "the risk does not change when two layers swap."
    )

    def __init__(
        self,
        dim: int = 5,
        context: int = 20,
        eigenvalues: Sequence[float] | None = None,
        covariance: Sequence[Sequence[float]] | str | None = None,
        layers: int = 3,
        seed: int = 0,
        samples: int = 1000,
    ) -> None:
        if whole("check.dim", dim, 1) > MAX_DIM:
            raise InputError(
                f"check.dim={dim}: must be from 1 to {MAX_DIM}; the token path holds all prompts' tokens "
                "at once"
            )
        if whole("check.layers", layers, 2) > MAX_LAYERS:
            raise InputError(
                f"check.layers={layers}: must be from 2 to {MAX_LAYERS}; beyond, the alternating product "
                "of the layers "
                "loses its digits"
            )
        self.layers, self.context = layers, whole("check.context", context, 1)
        self.seed = whole("check.seed", seed, 0)
        self.samples = whole("check.samples", samples, 1)
        task = LinearRegression(
            dim, self.context, eigenvalues, covariance=covariance, task_covariance="inverse", prefix="check"
        )
        self.law = task.law([self.seed])

    def measure(self) -> Finding:
        rng = generator(self.seed, "check")
        a_L = rng.uniform(0.2, 1.2, self.layers) / (
            1 + self.law.dim / self.context
        )  # steps of gradient descent
        A_LDD = torch.tensor(a_L)[:, None, None] * torch.linalg.inv(self.law.Sigma_RDD[0])
        gram = self.law.gram_prompts([rng], self.samples)
        tokens = self.law.token_prompts([rng], self.samples)
        parts = {  # name: (error, bound)
            "polynomial_error": (self._polynomial_error(a_L), ROUNDING * self._growth(a_L) ** 0.5),
            "gram_error": self._prediction_error(A_LDD, a_L, gram),
            "token_error": self._prediction_error(A_LDD, a_L, tokens),
        }
        if self.law.dim <= WORDS_DIM:
            first = a_L[:WORDS_LAYERS]
            parts["words_error"] = self._words_error(A_LDD[:WORDS_LAYERS]), self._unit() * self._growth(first)
        largest = max(parts, key=lambda name: parts[name][0])
        bound = Bound(
            parts[largest][1],
            f"rounding, of {largest}, each part having its own: 64 eps cond(Sigma) times what the terms "
            "would add up to with all signs equal, over "
            "what they add up to",
        )
        return Finding(
            joint([decide(error, limit) for error, limit in parts.values()]),
            {"max_error": parts[largest][0]} | {name: error for name, (error, _) in parts.items()},
            bound,
            self._control(A_LDD, a_L),
            [
                "On S the prediction itself is unchanged, prompt by prompt, which is more than the lemma "
                "says.",
                "The proof uses only that all A_l are multiples of one matrix; w ~ N(0, Sigma^-1) is not "
                "needed.",
            ],
        )

    def _polynomial_error(self, a_L: np.ndarray) -> float:
        risk = InvariantRisk(self.law.dim, self.context, self.layers)
        before = risk.value(a_L.tolist())
        return max(abs(risk.value(a_L[order].tolist()) / before - 1) for order in self._swaps(self.layers))

    def _prediction_error(
        self, A_LDD: Tensor, a_L: np.ndarray, prompt: GramPrompt | TokenPrompt
    ) -> tuple[float, float]:
        """Largest change of a prediction and its bound, relative to the size of the batch's predictions."""
        A_RLDD = torch.stack([A_LDD, *(A_LDD[order] for order in self._swaps(self.layers))])
        path = "tokens" if isinstance(prompt, TokenPrompt) else "gram"
        rows = []
        for A in A_RLDD:
            family = SparseA(self.law.dim, self.layers)
            family.load({"A": A[None]})
            with torch.no_grad():
                rows.append(LinearTransformer(family, path).predict(prompt))
        predictions_RB = torch.cat(rows)
        size = float(predictions_RB[0].square().mean().sqrt())
        S_BDD = (prompt.gram() if isinstance(prompt, TokenPrompt) else prompt).gram_RBPP[0, :, :-1, :-1]
        inverse = self.law.task_root_RDD[0]
        s_B = torch.linalg.eigvalsh(inverse.mT @ S_BDD @ inverse)[:, -1]
        # |w| |x| prod (1 + a_l s) bounds all terms of a prediction; whitened |w| |x| is about D.
        terms = self.law.dim * float((1 + torch.tensor(a_L)[:, None] * s_B).prod(0).max())
        error = float((predictions_RB - predictions_RB[0]).abs().max())
        return error / size, self._unit() * terms / size

    def _words_error(self, A_LDD: Tensor) -> float:
        """Exact risk of the first layers alone."""
        orders = [list(range(len(A_LDD))), *self._swaps(len(A_LDD))]
        A_RLDD = torch.stack([A_LDD[order] for order in orders])
        risk_R = sparse_a_risk(A_RLDD, self.law.Sigma_RDD[0], self.law.Sigma_w_RDD[0], self.context)
        return float((risk_R / risk_R[0] - 1).abs().max())

    def _growth(self, a_L: np.ndarray) -> float:
        """Risk with all terms made positive (at -A) over the risk."""
        risk = InvariantRisk(self.law.dim, self.context, len(a_L))
        return risk.value((-a_L).tolist()) / risk.value(a_L.tolist())

    def _unit(self) -> float:
        return ROUNDING * float(torch.linalg.cond(self.law.Sigma_RDD[0]))

    def _control(self, A_LDD: Tensor, a_L: np.ndarray) -> Control:
        if self.law.dim > WORDS_DIM:
            prompt = self.law.gram_prompts([generator(self.seed, "control", 1)], self.samples)
            change, bound = self._prediction_error(self._off_s(A_LDD), a_L, prompt)
            text = "layers off S swapped (a random matrix added to A_0), largest change of a prediction"
            return Control(text, change, decide(change, bound) == "fails")
        if self.law.dim == 1:
            pair = A_LDD[:2].clone()
            pair[0] = 1.1 * pair[0]
            risk_R = self._risk_of_pairs(A_LDD[:2], pair)
            text = "a_0 a tenth larger instead of a swap (every A is on S at dim 1), exact risk, L = 2"
        else:
            pair = self._off_s(A_LDD[:2])
            risk_R = self._risk_of_pairs(pair, pair.flip(0))
            text = "two layers off S swapped (a random matrix added to A_0), exact risk, L = 2"
        change = float((risk_R[1] / risk_R[0] - 1).abs())
        return Control(text, change, decide(change, self._unit() * self._growth(a_L[:2])) == "fails")

    def _off_s(self, A_LDD: Tensor) -> Tensor:
        noise_DD = torch.tensor(generator(self.seed, "control").standard_normal((self.law.dim, self.law.dim)))
        root_DD = self.law.task_root_RDD[0]
        first = A_LDD[0] + 0.3 * root_DD @ noise_DD @ root_DD.mT
        return torch.cat([first[None], A_LDD[1:]])

    def _risk_of_pairs(self, *pairs: Tensor) -> Tensor:
        return sparse_a_risk(torch.stack(pairs), self.law.Sigma_RDD[0], self.law.Sigma_w_RDD[0], self.context)

    @staticmethod
    def _swaps(layers: int) -> list[list[int]]:
        swaps = []
        for i, j in combinations(range(layers), 2):
            order = list(range(layers))
            order[i], order[j] = j, i
            swaps.append(order)
        return swaps
