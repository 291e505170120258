"""The law against its moments, its Gram matrices against its tokens, integrated against sampled risks."""

import numpy as np
import pytest
import torch

from icl.errors import InputError
from icl.models import LSA, LinearTransformer, SparseA
from icl.random import generator
from icl.tasks import ConditionedRegression

SIGMAS = 5.0


def law(**task):
    given = {"dim": 3, "context": 6, "condition": 4.0, "largest": [1.0, 2.0]}
    return ConditionedRegression(**given | task).law([0, 1])


def streams(step=0):
    return [generator(seed, "check", step) for seed in (0, 1)]


def test_covariances_are_as_prescribed():
    F_BDD = law().roots(generator(0, "check"), 2000)
    s_BD = np.linalg.svd(F_BDD, compute_uv=False) ** 2
    assert np.allclose(s_BD[:, 0] / s_BD[:, -1], 4.0) and s_BD[:, 0].min() >= 1 and s_BD[:, 0].max() <= 2
    assert abs(s_BD[:, 0].mean() - 1.5) < SIGMAS * (1 / 12 / 2000) ** 0.5
    share_B = (s_BD[:, 1] - s_BD[:, 2]) / (s_BD[:, 0] - s_BD[:, 2])
    assert abs(share_B.mean() - 0.5) < SIGMAS * (1 / 12 / 2000) ** 0.5
    first_B = (F_BDD @ F_BDD.transpose(0, 2, 1))[:, 0, 0] / s_BD.sum(-1)  # Haar: 1 / d in the mean
    assert abs(first_B.mean() - 1 / 3) < SIGMAS * first_B.std() / 2000**0.5 < 0.05
    assert np.ptp(law(covariance="batch").roots(generator(0, "check"), 9), axis=0).max() == 0
    plain = law(condition=1.0, largest=[1.0, 1.0]).roots(generator(0, "check"), 2)
    assert np.array_equal(plain, np.broadcast_to(np.eye(3), (2, 3, 3)))


@pytest.mark.parametrize("constant", [False, True])
def test_gram_matrices_are_those_of_tokens(constant):
    """First and second moments of every entry, of which the covariance's two factors differ."""
    of = law(label_noise=0.4, constant=constant)
    drawn = of.gram_prompts(streams(1), 20_000), of.token_prompts(streams(2), 20_000).gram()
    assert drawn[0].context_R == drawn[1].context_R == (6, 6)
    for power in (1, 2):
        moments = [
            torch.cat([p.gram_RBPP.flatten(2), p.query_RBP, p.target_RB[..., None]], -1)[0] ** power
            for p in drawn
        ]
        error = (moments[0].mean(0) - moments[1].mean(0)).abs()
        scale = ((moments[0].var(0) + moments[1].var(0)) / 20_000).sqrt()
        assert (error <= SIGMAS * scale + 1e-12).all()
    exact = np.mean([1.5 * (1 + 1 / 4 + 5 / 8) / 3])  # E tr Sigma / d
    y = drawn[0].gram_RBPP[..., 3, 3]
    assert abs(float(y.mean()) - 3 * exact - 0.4) < SIGMAS * float(y.std()) / 40_000**0.5
    assert drawn[0].target_RB.shape == (2, 20_000)


def test_losses_are_divided_by_d_and_the_query_integrates_out():
    of, family = law(constant=True), LSA(3, 2, 2, mask=True, init_std=0.1)
    family.initialise([0, 1])
    model = LinearTransformer(family)
    offered = of.estimators(model)
    assert list(offered) == ["expected", "sampled"]
    expected, sampled = offered["expected"](), offered["sampled"]()
    draw = expected.draw(streams(), 1)
    u_RBD = torch.from_numpy(np.stack([rng.standard_normal((100_000, 3)) for rng in streams(3)]))
    x_RDB = torch.einsum("rij,rbj->rib", draw["root"][..., 0], u_RBD)
    drawn = {
        "gram": draw["gram"].expand(-1, -1, -1, 100_000),
        "query": torch.cat([x_RDB, torch.zeros_like(x_RDB[:, :1]), torch.ones_like(x_RDB[:, :1])], 1),
        "target": (draw["w"] * x_RDB).sum(1),
    }
    error_RB = (model.last_entry(drawn["gram"], drawn["query"]) - drawn["target"]).square() / 3
    assert torch.allclose(sampled.risk(model, drawn), error_RB.mean(-1))
    stderr_R = error_RB.std(-1) / 100_000**0.5
    assert ((expected.risk(model, draw) - error_RB.mean(-1)).abs() < SIGMAS * stderr_R).all()


def test_without_a_mask_the_drawn_gram_matrix_holds_the_query():
    of, family = law(constant=True), LSA(3, 2, 2, mask=False)
    family.initialise([0, 1])
    model = LinearTransformer(family)
    offered = of.estimators(model)
    assert list(offered) == ["sampled"]
    risk_R = offered["sampled"]().risk(model, offered["sampled"]().draw(streams(), 5))
    prompt = of.gram_prompts(streams(), 5)
    loss_R = (model.predict(prompt) - prompt.target_RB).square().mean(-1) / 3
    assert torch.allclose(risk_R, loss_R, rtol=1e-12)


def test_a_lesson_cuts_w_alone():
    whole, easy = law(), law().lesson(2, 4)
    prompt = easy.token_prompts(streams(), 5)
    assert prompt.context_RBNP.shape[2] == 4 and whole.context_R == (6, 6)
    x, y = prompt.context_RBNP[..., :3], prompt.context_RBNP[..., 3]
    w = torch.linalg.lstsq(x, y[..., None]).solution[..., 0]
    assert (w[..., 2].abs() < 1e-10).all() and (w[..., :2].abs() > 1e-4).all()
    assert (x[..., 2].abs().amax(-1) > 1e-3).all()


def test_a_mask_needs_the_model_that_has_it():
    with pytest.raises(InputError, match="only model=lsa"):
        law(constant=True).estimators(LinearTransformer(SparseA(3, 1)))
