import numpy as np
import pytest
import torch
from scipy.optimize import check_grad

from icl.checks.ahn import softmax_heads
from icl.checks.ahn.softmax import Softmax
from icl.checks.ahn.softmax_heads import Seen, draw, excess, fit, read
from icl.errors import InputError
from icl.models import LinearTransformer, MultiHead
from icl.random import generator
from icl.tasks import LinearRegression

K, B = np.array([-0.6, 0.3]), np.array([-1.1, 0.4])


def tokens(dim, context, count):
    return (
        LinearRegression(dim, context, covariance="identity")
        .law([0])
        .token_prompts([generator(0, "check")], count)
    )


def seen_of(prompt):
    z_BNP, x_BD = prompt.context_RBNP[0].numpy(), prompt.query_RBP[0, :, :-1].numpy()
    scores_BN = np.einsum("bnd,bd->bn", z_BNP[..., :-1], x_BD)
    return Seen(scores_BN, z_BNP[..., -1], np.square(x_BD).sum(1), prompt.target_RB[0].numpy())


def test_what_the_bound_does_not_decide_says_why():
    small = Softmax(dim=2, context=8, heads=[1], samples=4000, boxes=256)
    assert small.decide().reasons == ["the bound needs check.dim of at least 3"]
    assert "check.boxes=64000 raises it, to 30.0% at most" in Softmax()._why(0.01, 0.3)
    assert "no number of boxes" in Softmax()._why(0.01, 0.04)
    with pytest.raises(InputError, match=r"check\.context=1000: at most 10000 of check\.samples"):
        Softmax(dim=1, context=1000, samples=25_000)


def test_both_signs_of_the_keys_are_tried(monkeypatch):
    begun, right = [], softmax_heads.minimize
    kept = lambda f, x, **how: begun.append(x[0]) or right(f, x, **how)  # noqa: E731
    monkeypatch.setattr(softmax_heads, "minimize", kept)
    one, both = (excess(5, 20, 1, starts, 2000, 0).mean for starts in (1, 2))
    assert both == pytest.approx(one, rel=1e-4) and begun[0] == begun[1] < 0 < begun[2]


def test_what_heads_read_is_what_the_models_predict():
    dim, prompt = 3, tokens(3, 6, 20)
    model = MultiHead(dim, 1, heads=2)
    model.initialise([0])
    with torch.no_grad():
        for M in (model.P, model.Q):
            M.zero_()
        for h in range(2):
            model.P[0, 0, h, -1, -1], model.Q[0, 0, h, :-1, :-1] = -B[h], K[h] * torch.eye(dim)
        expected = LinearTransformer(model, "tokens", "softmax").predict(prompt)[0]
    np.testing.assert_allclose(read(K, seen_of(prompt))[0] @ B, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("dim", "context"), [(1, 4), (5, 7)])
def test_prompts_are_drawn_as_tokens_are(dim, context):
    drawn, taken = draw(generator(1, "check"), dim, context, 40_000), seen_of(tokens(dim, context, 40_000))
    for seen in (lambda one: (read(K, one)[0] @ B - one.target_B) ** 2, lambda one: one.target_B**2):
        first, second = seen(drawn), seen(taken)
        error = ((first.var() + second.var()) / 40_000) ** 0.5
        assert first.mean() == pytest.approx(second.mean(), abs=4 * error)


def test_the_gradient_is_that_of_the_loss():
    seen = draw(generator(0, "check"), 3, 6, 200)
    assert check_grad(lambda k: fit(k, seen)[0], lambda k: fit(k, seen)[1], K) < 1e-6
