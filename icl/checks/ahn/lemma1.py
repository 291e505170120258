"""ahn, Lemma 1: the forward pass of eq. (8) is preconditioned gradient descent on the prompt's least squares.

With P_l = [[0, 0], [0, 1]] and Q_l = -[[A_l, 0], [0, 0]] the label entry of token i after l layers is
y_i - <w_l, x_i>, and of the query (label 0) -<w_l, x_q>, where w_0 = 0 and w <- w - A_l^T grad R(w),
R(w) = 1/(2N) sum_i (<w, x_i> - y_i)^2. The paper prints A_l for A_l^T: the same for symmetric A_l.

R seeds, B prompts, N context tokens, M = N + 1 with the query, D covariates, P = D + 1 token width, L layers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from icl.checks.verdict import Bound, Control, Finding, Weights, decide
from icl.errors import InputError, whole
from icl.models import SparseA, tokens
from icl.random import generator
from icl.tasks import LinearRegression, LinearRegressionLaw, TokenPrompt

EPSILON = float(np.finfo(np.float64).eps)
MAX_LAYERS = 16
MAX_SCORES = 20_000_000  # attention scores: prompts times layers times (context + 1)^2
PERTURBATION = 0.1  # of A_0 in the control, as a share of the random A


class Lemma1:
    """Settings: sizes, eigenvalues or covariance of x, number of prompts (`samples`), seed of all draws."""

    reference = "Lemma 1, eqs. (8) and (9)"
    claim = (
        "The forward pass of eq. (8) is L steps of gradient descent preconditioned by A_l, layer by layer."
    )

    def __init__(
        self,
        dim: int = 5,
        context: int = 20,
        eigenvalues: Sequence[float] | None = None,
        covariance: Sequence[Sequence[float]] | str | None = None,
        layers: int = 4,
        seed: int = 0,
        samples: int = 64,
    ) -> None:
        whole("check.dim", dim, 1)
        self.context = whole("check.context", context, 1)
        self.layers, self.seed = whole("check.layers", layers, 1), whole("check.seed", seed, 0)
        self.samples = whole("check.samples", samples, 1, 100_000)
        if self.layers > MAX_LAYERS:
            raise InputError(
                f"check.layers={layers}: at most {MAX_LAYERS}, the bound on rounding doubles with each layer"
            )
        self._affordable(self.context, self.layers)
        task = LinearRegression(dim, context, eigenvalues=eigenvalues, covariance=covariance, prefix="check")
        self.law = task.law([self.seed])

    def measure(self) -> Finding:
        A_LDD = self._random(self.layers, self.law, generator(self.seed, "check", 1))
        return self._find([(self.law, A_LDD)])

    def judge(self, weights: Weights) -> Finding:
        """The same for given A, each seed on prompts of its own law."""
        law = weights.law
        if weights.family != "sparse_a" or weights.activation != "identity":
            raise InputError(
                f"check.weights: Lemma 1 is about family sparse_a, eq. (8), with activation identity, "
                f"not {weights.family} with {weights.activation}"
            )
        if law.label_noise:
            raise InputError("check.weights: Lemma 1 is about labels without noise")
        A_RLDD = weights.matrices["A"].detach().to(torch.float64)
        self._affordable(max(law.context_R), A_RLDD.shape[1])
        return self._find([(law.replica(r), A_LDD) for r, A_LDD in enumerate(A_RLDD)])

    def _affordable(self, context: int, layers: int) -> None:
        most = int((MAX_SCORES / (self.samples * layers)) ** 0.5) - 1
        if context > most:
            raise InputError(
                f"check.context={context}: at most {most} with {self.samples} samples and {layers} layers, "
                "attention between all tokens takes samples * layers * (context + 1)^2 numbers"
            )

    def _find(self, seeds: Sequence[tuple[LinearRegressionLaw, Tensor]]) -> Finding:
        errors = [self._errors(law, A_LDD) for law, A_LDD in seeds]
        by_seed = [error["transpose"] for error in errors]
        max_error = float(np.max(by_seed))
        bound = max(_rounding(A_LDD, law.context_R[0]) for law, A_LDD in seeds)
        asymmetry = max(float((A - A.mT).norm() / A.norm().clamp_min(1e-300)) for _, A in seeds)
        wrong = ["perturbed", *(["printed"] if asymmetry > 1e-6 else [])]
        control = min(error[name] for name in wrong for error in errors)
        return Finding(
            verdict=decide(max_error, bound),
            measured={
                "max_error": max_error,
                "max_error_by_seed": by_seed,
                "max_error_with_A": float(np.max([error["printed"] for error in errors])),
                "max_error_second_division": float(np.max([error["divided"] for error in errors])),
                "asymmetry": asymmetry,
            },
            bound=Bound(
                bound,
                "rounding: 2^-52 times the additions and products along one entry's path; errors are shares "
                "of the sum of the sizes of all terms of that entry",
            ),
            control=Control(
                "error against descent with A_0 perturbed"
                + (" and with A_l for A_l^T, the smaller" if len(wrong) > 1 else " (A is symmetric)"),
                control,
                control > bound,
            ),
            notes=[
                "With (8) as printed the preconditioner is A_l^T: the proof transposes silently. For "
                "symmetric A_l, as at all of the paper's solutions, the two are the same.",
                "The proof divides by n twice (theta - A grad f / n with 1/n already in f): eq. (9) is "
                "right, that line is not. Nor is the sign in its last line: the entry is y - <w, x>.",
            ],
        )

    def _errors(self, law: LinearRegressionLaw, A_LDD: Tensor) -> dict[str, float]:
        """Largest error of the forward pass against descent with A^T and with three wrong preconditioners."""
        prompt = law.token_prompts([generator(self.seed, "check")], self.samples)
        noise_DD = self._random(1, law, generator(self.seed, "control"))[0]
        perturbed_LDD = torch.cat([A_LDD[:1] + PERTURBATION * noise_DD, A_LDD[1:]])
        entries_LBM = label_entries(A_LDD, prompt)
        preconditioners = {
            "transpose": A_LDD.mT,
            "printed": A_LDD,
            "perturbed": perturbed_LDD.mT,
            "divided": A_LDD.mT / law.context_R[0],
        }
        sizes_LBM = _sizes(A_LDD.mT, prompt)
        return {
            name: float(((entries_LBM - descent_entries(T_LDD, prompt)).abs() / sizes_LBM).max())
            for name, T_LDD in preconditioners.items()
        }

    @staticmethod
    def _random(layers: int, law: LinearRegressionLaw, rng: np.random.Generator) -> Tensor:
        """Non-symmetric A with x_i^T A x_j of order one at most: a layer about doubles the terms' sizes."""
        noise_LDD = torch.from_numpy(rng.standard_normal((layers, law.dim, law.dim)))
        return noise_LDD / (noise_LDD.norm(dim=(1, 2), keepdim=True) * law.Sigma_RDD[0].trace())


def label_entries(A_LDD: Tensor, prompt: TokenPrompt) -> Tensor:
    """The last row of Z_1 .. Z_L: context by eq. (4) as printed, query by the token path of icl.models."""
    model = SparseA(A_LDD.shape[-1], len(A_LDD))
    model.load({"A": A_LDD[None]})
    P, Q = (stack.detach() for stack in model.stack())
    N = prompt.context_RBNP.shape[2]
    mask_M = torch.ones(N + 1, dtype=torch.float64)
    mask_M[-1] = 0
    Z_BPM = torch.cat([prompt.context_RBNP[0], prompt.query_RBP[0][:, None]], 1).mT
    rows = []
    for layer in range(len(A_LDD)):
        P_PP, Q_PP = P[0, layer, 0], Q[0, layer, 0]
        Z_BPM = Z_BPM + P_PP @ (Z_BPM * mask_M) @ (Z_BPM.mT @ Q_PP @ Z_BPM) / N
        query_BP = tokens.stack_forward(
            P[:, : layer + 1], Q[:, : layer + 1], prompt.context_RBNP, prompt.query_RBP
        )[0]
        rows.append(torch.cat([Z_BPM[:, -1, :N], query_BP[:, -1:]], 1))
    return torch.stack(rows)


def descent_entries(T_LDD: Tensor, prompt: TokenPrompt) -> Tensor:
    """y_i - <w_l, x_i> for the context and -<w_l, x_q> for the query, w <- w - T_l grad R(w)."""
    x_BND, y_BN1 = prompt.context_RBNP[0, :, :, :-1], prompt.context_RBNP[0, :, :, -1:]
    x_q_B1D = prompt.query_RBP[0, :, None, :-1]
    w_BD1 = torch.zeros_like(x_q_B1D.mT)
    rows = []
    for T_DD in T_LDD:
        gradient_BD1 = x_BND.mT @ (x_BND @ w_BD1 - y_BN1) / x_BND.shape[1]
        w_BD1 = w_BD1 - T_DD @ gradient_BD1
        rows.append(torch.cat([y_BN1 - x_BND @ w_BD1, -x_q_B1D @ w_BD1], 1)[..., 0])
    return torch.stack(rows)


def _sizes(T_LDD: Tensor, prompt: TokenPrompt) -> Tensor:
    """The sum of the sizes of the terms of every entry: descent on absolute values, all its minus signs plus.

    The query's unit includes its target's size.
    """
    absolute = TokenPrompt(
        torch.cat([prompt.context_RBNP[..., :-1].abs(), -prompt.context_RBNP[..., -1:].abs()], -1),
        prompt.query_RBP.abs(),
        prompt.target_RB,
    )
    sizes_LBM = descent_entries(-T_LDD.abs(), absolute).abs()
    sizes_LBM[:, :, -1] += prompt.target_RB[0].abs()
    return sizes_LBM


def _rounding(A_LDD: Tensor, context: int) -> float:
    L, D, P = len(A_LDD), A_LDD.shape[-1], A_LDD.shape[-1] + 1
    forward, descent = 2 * (context + 1) + 3 * P + 2, context + 3 * D + 3
    return EPSILON * L * (forward + descent)
