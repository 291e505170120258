"""`icl bench bench=giannou`: a step of LSA in Gram form over one of its tokens, and the laptop figures."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor

from icl.bench.command import run_icl
from icl.bench.timing import compare
from icl.models import LSA
from icl.random import generator
from icl.tasks import ConditionedRegression

LAYERS, HEADS, WIDTH, RANK = 4, 4, 64, 16
DIM, CONTEXT, BATCH = 10, 50, 500
RATIO, FIGURES_SECONDS, FIGURES_MB = 5.0, 480, 3072


def run(repeats: int) -> Iterator[dict[str, Any]]:
    """Rows as they are measured."""
    yield gram_over_tokens(repeats)
    with tempfile.TemporaryDirectory() as folder:
        ran = run_icl("figure", "figure=giannou/all", f"paths.outputs={folder}")
        yield ran.row("all figures at laptop", FIGURES_SECONDS, FIGURES_MB)


def gram_over_tokens(repeats: int) -> dict[str, Any]:
    """Forward and backward of the published size, without LayerNorm and clipping, in float32."""
    family = LSA(DIM, LAYERS, HEADS, WIDTH, RANK, init_std=0.05)
    family.initialise([0], torch.float32)
    law = ConditionedRegression(DIM, CONTEXT, largest=(1.0, 1.0), constant=True).law([0])
    prompt = law.token_prompts([generator(0, "eval")], BATCH).to(torch.float32)
    seen, query_RBP = prompt.gram().with_query().gram_RBPP, prompt.query_RBP
    z_RBMP = torch.cat([prompt.context_RBNP, query_RBP[:, :, None]], dim=2)
    parameters = list(family.parameters())

    def step(predicted_RB: Tensor) -> None:
        loss = (predicted_RB - prompt.target_RB).square().mean()
        torch.autograd.grad(loss, parameters)

    def by_tokens() -> None:
        step(published(family, z_RBMP, CONTEXT))

    def by_gram() -> None:
        step((family.row(seen) * query_RBP).sum(-1))

    name = f"LSA, {LAYERS} layers, width {WIDTH}, batch {BATCH}, n = {CONTEXT}"
    return asdict(compare(name, ("tokens", by_tokens), ("gram", by_gram), repeats, at_least=RATIO))


def published(family: LSA, z_RBMP: Tensor, context: int) -> Tensor:
    """Predict token by token, as the published code does: all scores first, then the values."""
    assert family.rank is not None
    h_RBMW = family.embedded(z_RBMP)
    R, B, M, W = h_RBMW.shape
    for layer in range(family.layers):
        QKV_RFW = torch.cat([of[:, layer] for of in (family.Q, family.K, family.V)], 1).reshape(R, -1, W)
        heads = (h_RBMW.reshape(R, B * M, W) @ QKV_RFW.mT).view(R, B, M, 3, family.heads, family.rank)
        q_RBHMX, k_RBHMX, v_RBHMX = heads.permute(3, 0, 1, 4, 2, 5)
        scores_RBHMM = q_RBHMX @ k_RBHMX.mT / (family.rank**0.5 * context)
        y_RFX = (scores_RBHMM @ v_RBHMX).transpose(2, 3).reshape(R, B * M, family.heads * family.rank)
        O_RXW = family.O[:, layer].transpose(2, 3).reshape(R, family.heads * family.rank, W)
        h_RBMW = h_RBMW + (y_RFX @ O_RXW).view(R, B, M, W)
    return (h_RBMW[:, :, -1] * family.o[:, 0]).sum(-1)
