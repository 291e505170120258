"""Tests of encoders against a plain loop."""

import math

import pytest
import torch

from icl.models import Encoder
from icl.tasks.prompts import TokenPrompt
from tests.theory.drawing import draw

R, B, N, D, L, W, H = 2, 3, 4, 2, 2, 4, 2
KINDS = {
    "lsa": {"attention": "linear", "norm": "none", "hidden": 0},
    "clipped": {"attention": "linear", "norm": "none", "hidden": 0, "clip": 0.2},
    "lsa_ln": {"attention": "linear", "norm": "layer", "hidden": 0},
    "softmax": {"attention": "softmax", "norm": "layer", "hidden": 6},
    "masked": {"attention": "softmax", "norm": "layer", "hidden": 6, "mask": True, "reads": "parameter"},
    "masked_lsa": {"attention": "linear", "norm": "none", "hidden": 6, "mask": True},
}


def encoder(seeds=(0, 1), **settings):
    model = Encoder(D, **{"layers": L, "width": W, "heads": H, "init_std": 0.5} | settings)
    model.parametrization.initialise(seeds)
    with torch.no_grad():
        for name in ("gain", "last_gain"):
            if name in model.parametrization.shapes():
                gain = getattr(model.parametrization, name)
                gain.copy_(torch.randn(gain.shape[1:], generator=torch.Generator().manual_seed(1)))
    return model


@pytest.fixture(scope="module")
def prompt():
    context, query = draw(3, R, B, N, D + 1), draw(4, R, B, D + 1)
    return TokenPrompt(context, query, torch.zeros(R, B, dtype=torch.float64), 1)


def by_hand(model, r, context_NP, query_P):
    """Return every token through every layer, number by number."""
    M = {name: matrix[r].tolist() for name, matrix in model.parametrization.matrices().items()}

    def times(matrix, vector):
        return [sum(m * v for m, v in zip(row, vector, strict=True)) for row in matrix]

    def norm(h, gain):
        if model.norm == "none":
            return h
        mean = sum(h) / W
        root = math.sqrt(sum((v - mean) ** 2 for v in h) / W + 1e-5)
        return [(v - mean) / root * (1 + g) for v, g in zip(h, gain, strict=True)]

    def plus(a, b):
        return [x + y for x, y in zip(a, b, strict=True)]

    tokens_ = [[*z, 1.0] for z in [*context_NP.tolist(), query_P.tolist()]]
    hs = [times(M["read_in"][0], z) for z in tokens_]
    normed = model.norm == "layer"
    for layer in range(L):
        gains = M["gain"][layer] if normed else [[], []]
        keys = [norm(h, gains[0]) for h in hs]
        q, k, v = ([times(M[name][layer], h) for h in keys] for name in ("query", "key", "value"))
        seen = range(N if model.mask else N + 1)
        for i, h in enumerate(hs):
            out = []
            for head in range(H):
                part = slice(head * W // H, (head + 1) * W // H)
                scores = [sum(a * b for a, b in zip(q[i][part], k[j][part], strict=True)) for j in seen]
                scores = [s / math.sqrt(W // H) for s in scores]
                if model.attention == "softmax":
                    total = sum(map(math.exp, scores))
                    scores = [math.exp(s) / total for s in scores]
                out += [sum(s * v[j][e] for s, j in zip(scores, seen, strict=True)) for e in range(W)[part]]
            h = plus(h, times(M["merge"][layer], out))
            if model.parametrization.hidden:
                up = times(M["up"][layer], norm(h, gains[-1]))
                h = plus(h, times(M["down"][layer], [u * (1 + math.erf(u / 2**0.5)) / 2 for u in up]))
            hs[i] = h if model.clip is None else [min(max(x, -model.clip), model.clip) for x in h]
    last = norm(hs[-1], M["last_gain"][0][0] if normed else [])
    return times(M["read_out"][0], last)


@pytest.mark.parametrize("cached", [1, 2 * R * (N + 1) * W])
@pytest.mark.parametrize("kind", KINDS)
def test_without_a_gradient_prompts_are_read_in_pieces(kind, cached, prompt, monkeypatch):
    """Read one prompt at a time, and two and then one."""
    model = encoder(**KINDS[kind])
    whole_RBK = model.read(prompt).detach()
    monkeypatch.setattr("icl.models.batched.CACHED", cached)
    with torch.no_grad():
        torch.testing.assert_close(model.read(prompt), whole_RBK, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_against_a_plain_loop(kind, prompt):
    model = encoder(**KINDS[kind])
    out_RBK = model.read(prompt)
    for r in range(R):
        for b in range(B):
            expected = by_hand(model, r, prompt.context_RBNP[r, b], prompt.query_RBP[r, b])
            assert torch.allclose(out_RBK[r, b], torch.tensor(expected).double(), rtol=1e-6, atol=1e-9)


def test_a_parameter_predicts_by_its_product_with_the_query(prompt):
    model = encoder(**KINDS["masked"])
    w_RBD = model.read(prompt)
    assert w_RBD.shape == (R, B, D)
    assert torch.equal(model.predict(prompt), (w_RBD * prompt.query_RBP[..., :D]).sum(-1))
