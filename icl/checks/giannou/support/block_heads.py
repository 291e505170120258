"""Heads that are multiples of the identity on the blocks of a token: x, the label y and the constant.

T = sum_h P_h G Q_h with such P_h and Q_h is C o G, the entry of C that belongs to both blocks times G.
Without a mask G is that of the context and the query, whose label is 0. B prompts, L layers, D covariates,
P = D + 2.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from icl.models import LSA, LinearTransformer
from icl.tasks import ConditionedRegression, GramPrompt

ENTRIES = {"xx": (0, 0), "yx": (1, 0), "xy": (0, 1), "yy": (1, 1)}  # P reads into the first, Q from the last
SCALARS = ("xx", "yx")  # the scalar family
ITERATIONS = 100


def draw_prompts(rng: np.random.Generator, dim: int, context: int, samples: int) -> GramPrompt:
    """Draw prompts of N(0, I) without noise, with the constant."""
    law = ConditionedRegression(dim, context, largest=(1.0, 1.0), constant=True).law([0])
    return law.gram_prompts([rng], samples)


def losses(C_L33: Tensor, read_out: Tensor, prompt: GramPrompt) -> Tensor:
    """Squared errors over d, (B,)."""
    assert prompt.context_R is not None
    D, n = prompt.query_RBP.shape[-1] - 2, prompt.context_R[0]
    query_BP = prompt.query_RBP[0]
    gram_BPP = prompt.gram_RBPP[0] + query_BP[:, :, None] * query_BP[:, None] / n
    block_P = torch.tensor([0] * D + [1, 2])
    for layer, C_33 in enumerate(C_L33):
        T_BPP = C_33[block_P][:, block_P] * gram_BPP
        query_BP = query_BP + (T_BPP @ query_BP[..., None])[..., 0]
        if layer + 1 < len(C_L33):
            move_BPP = torch.eye(D + 2, dtype=T_BPP.dtype) + T_BPP
            gram_BPP = move_BPP @ gram_BPP @ move_BPP.mT
    return (read_out * query_BP[:, D] - prompt.target_RB[0]).square() / D


def fitted(
    names: tuple[str, ...], layers: int, prompt: GramPrompt, start: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    """Return C and the read-out of least loss on these prompts, only the entries of these names free."""
    free_33 = torch.zeros(3, 3, dtype=torch.float64)
    for name in names:
        free_33[ENTRIES[name]] = 1
    if start is None:
        first_L33 = torch.zeros(layers, 3, 3, dtype=torch.float64)
        first_L33[:, 0, 0], first_L33[:, 1, 0] = -0.4, -0.5
        start = first_L33, torch.tensor(-1.0, dtype=torch.float64)
    C_L33, read_out = start[0].clone().requires_grad_(), start[1].clone().requires_grad_()
    engine = torch.optim.LBFGS(
        [C_L33, read_out], max_iter=ITERATIONS, history_size=20, line_search_fn="strong_wolfe",
        tolerance_grad=1e-9, tolerance_change=1e-13,
    )  # fmt: skip

    def closure() -> Tensor:
        engine.zero_grad()
        loss = losses(C_L33 * free_33, read_out, prompt).mean()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    engine.step(closure)  # type: ignore[arg-type]
    return (C_L33 * free_33).detach(), read_out.detach()


def losses_by_heads(C_L33: Tensor, read_out: Tensor, prompt: GramPrompt) -> Tensor:
    """Return the same by the model of the trained runs, a head for each of the three blocks that Q reads."""
    D, layers = prompt.query_RBP.shape[-1] - 2, len(C_L33)
    model = LSA(D, layers, 3, mask=False, init_std=0.0)
    model.initialise([0])
    blocks = torch.block_diag(torch.eye(D), torch.ones(1, 1), torch.ones(1, 1)).double()
    of_block_3PP = torch.stack([blocks * 0, blocks * 0, blocks * 0])
    for b, part in enumerate((slice(0, D), slice(D, D + 1), slice(D + 1, D + 2))):
        of_block_3PP[b, part, part] = blocks[part, part]
    with torch.no_grad():
        for layer in range(layers):
            for head in range(3):
                model.P[0, layer, head] = (C_L33[layer, :, head, None, None] * of_block_3PP).sum(0)
                model.Q[0, layer, head] = of_block_3PP[head]
        model.o.zero_()
        model.o[..., D] = read_out
        predicted_B = LinearTransformer(model).predict(prompt)[0]
    return (predicted_B - prompt.target_RB[0]).square() / D
