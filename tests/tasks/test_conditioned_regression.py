"""Tests of the law against its moments, Gram matrices against tokens, integrated against sampled risks."""

import numpy as np
import torch

from icl.random import generator
from icl.tasks import ConditionedRegression
from tests.streams import streams

SIGMAS = 5.0


def law(**task):
    given = {"dim": 3, "context": 6, "condition": 4.0, "largest": [1.0, 2.0]}
    return ConditionedRegression(**given | task).law([0, 1])


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


def test_a_stage_cuts_w_alone():
    whole, easy = law(), law().restricted(2, 4)
    prompt = easy.token_prompts(streams(), 5)
    assert prompt.context_RBNP.shape[2] == 4 and whole.context_R == (6, 6)
    x, y = prompt.context_RBNP[..., :3], prompt.context_RBNP[..., 3]
    w = torch.linalg.lstsq(x, y[..., None]).solution[..., 0]
    assert (w[..., 2].abs() < 1e-10).all() and (w[..., :2].abs() > 1e-4).all()
    assert (x[..., 2].abs().amax(-1) > 1e-3).all()
