"""The label entries of a stack of eq. (8), by its forward pass and by gradient descent in context.

B prompts, N context tokens, M = N + 1 with the query, D covariates, P = D + 1 token width, L layers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from icl.checks.attention import every_layer, tokens_of
from icl.models import SparseA, tokens
from icl.random import generator
from icl.tasks import LinearRegressionLaw, TokenPrompt

Steps = Sequence[float] | np.ndarray
PERTURBATION = 0.1  # of A_0 in the control of Lemma 1, as a share of the random A


def label_entries(A_LDD: Tensor, prompt: TokenPrompt) -> Tensor:
    """Return the last row of Z_1 .. Z_L: context by eq. (4) as printed, query by the token path of
    icl.models."""
    model = SparseA(A_LDD.shape[-1], len(A_LDD))
    model.load({"A": A_LDD[None]})
    P, Q = (stack.detach() for stack in model.stack())
    entries_LBM = every_layer(P[0, :, 0], Q[0, :, 0], tokens_of(prompt))[:, :, -1].clone()
    for layer in range(len(A_LDD)):
        shallow = P[:, : layer + 1], Q[:, : layer + 1]
        query_RBP = tokens.stack_forward(*shallow, prompt.context_RBNP, prompt.query_RBP)
        entries_LBM[layer, :, -1] = query_RBP[0, :, -1]
    return entries_LBM


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


def sizes_of_terms(T_LDD: Tensor, prompt: TokenPrompt) -> Tensor:
    """Return the sum of the sizes of the terms of every entry: descent on absolute values, all its minus
    signs plus.

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


def random_steps(layers: int, law: LinearRegressionLaw, rng: np.random.Generator) -> Tensor:
    """Non-symmetric A with x_i^T A x_j of order one at most: a layer about doubles the terms' sizes."""
    noise_LDD = torch.from_numpy(rng.standard_normal((layers, law.dim, law.dim)))
    return noise_LDD / (noise_LDD.norm(dim=(1, 2), keepdim=True) * law.Sigma_RDD[0].trace())


def operations(A_LDD: Tensor, context: int) -> int:
    """Additions and products along one entry's path, of both computations."""
    L, D, P = len(A_LDD), A_LDD.shape[-1], A_LDD.shape[-1] + 1
    forward, descent = 2 * (context + 1) + 3 * P + 2, context + 3 * D + 3
    return L * (forward + descent)


def descent_errors(law: LinearRegressionLaw, A_LDD: Tensor, samples: int, seed: int) -> dict[str, float]:
    """Largest error of the forward pass against descent with A^T and with three wrong preconditioners."""
    prompt = law.token_prompts([generator(seed, "check")], samples)
    noise_DD = random_steps(1, law, generator(seed, "control"))[0]
    preconditioners = {
        "transpose": A_LDD.mT,
        "printed": A_LDD,
        "perturbed": torch.cat([A_LDD[:1] + PERTURBATION * noise_DD, A_LDD[1:]]).mT,
        "divided": A_LDD.mT / law.context_R[0],
    }
    entries_LBM, sizes_LBM = label_entries(A_LDD, prompt), sizes_of_terms(A_LDD.mT, prompt)
    return {
        name: float(((entries_LBM - descent_entries(T_LDD, prompt)).abs() / sizes_LBM).max())
        for name, T_LDD in preconditioners.items()
    }


def gd_plus_plus(eta_L: Steps, gamma_L: Steps, Z_BPM: Tensor) -> Tensor:
    """(L, B, P, M): all tokens after each step of GD++, whose gradient is that of the context at w = 0."""
    x_BMD, y_BM, found = Z_BPM[:, :-1].mT, Z_BPM[:, -1], []
    N = Z_BPM.shape[-1] - 1
    for eta, gamma in zip(eta_L, gamma_L, strict=True):
        w_BD = eta / N * (y_BM[:, :N, None] * x_BMD[:, :N]).sum(1)
        moment_BDD = (x_BMD[:, :N, :, None] * x_BMD[:, :N, None, :]).sum(1) / N
        y_BM = y_BM - (x_BMD * w_BD[:, None]).sum(-1)
        x_BMD = x_BMD - gamma * x_BMD @ moment_BDD
        found.append(torch.cat([x_BMD, y_BM[..., None]], -1).mT)
    return torch.stack(found)
