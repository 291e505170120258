import numpy as np
import pytest
import torch

from icl.checks.ahn import softmax_heads
from icl.checks.ahn.softmax import Softmax
from icl.checks.ahn.softmax_heads import SoftmaxHeads, losses
from icl.errors import InputError
from icl.models import LinearTransformer, MultiHead
from icl.random import generator

SMALL = {"dim": 2, "context": 8, "heads": [1], "starts": 2, "samples": 4000, "boxes": 256}


def test_what_the_bound_does_not_decide_says_why():
    assert Softmax(**SMALL).decide().reasons == ["the bound needs check.dim of at least 3"]
    assert "check.boxes=64000 raises it, to 30.0% at most" in Softmax()._why(0.01, 0.3)
    assert "no number of boxes" in Softmax()._why(0.01, 0.04)


def test_both_signs_of_the_labels_are_tried(mutate):
    """Attend to keys unlike the query, and to keys like it: two local minima, the first the lower."""
    search = Softmax(samples=2000).search()
    prompt = search.law.token_prompts([generator(0, "search")], 2000)
    starts = {s: search.start(1, s, np.random.default_rng(1)) for s in (-1, 1)}
    by_sign = {s: search.descend(1, start, prompt, "softmax")[0] for s, start in starts.items()}
    assert by_sign[1] < 0.9 * by_sign[-1]
    signs = []
    mutate(SoftmaxHeads, "start", lambda right, it, H, s, rng: signs.append(s) or right(it, H, s, rng))
    Softmax(**SMALL).decide()
    assert set(signs) == {-1, 1}


@pytest.mark.parametrize("activation", ["softmax", "identity"])
def test_losses_are_those_of_the_models(activation):
    law = Softmax(dim=3, context=6).search().law
    prompt = law.token_prompts([generator(0, "check")], 20)
    model = MultiHead(3, 1, heads=2, init_std=0.5)
    model.initialise([0])
    P_HPP, Q_HPP = model.P.detach()[0, 0], model.Q.detach()[0, 0]
    predicted = LinearTransformer(model, "tokens", activation).predict(prompt)[0].detach()
    expected = (predicted - prompt.target_RB[0]).square()
    found = losses(P_HPP[:, -1], Q_HPP[:, :, :-1], prompt, activation)
    np.testing.assert_allclose(found, expected, rtol=1e-11)


def test_fresh_prompts_come_in_parts_and_what_fills_the_memory_is_refused(monkeypatch):
    search = Softmax(**SMALL).search()
    whole = torch.cat([part.target_RB for part in search.fresh()], 1)
    monkeypatch.setattr(softmax_heads, "BLOCK", 10_000)
    parts = [part.target_RB for part in search.fresh()]
    assert len(parts) > 10 and whole.shape == torch.cat(parts, 1).shape == (1, 8 * 4000)
    with pytest.raises(InputError, match=r"check\.context=1000: .* at most 756 samples"):
        Softmax(dim=1, context=1000, samples=25_000, heads=[1, 16])
