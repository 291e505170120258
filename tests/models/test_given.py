"""The exact risk of weights given as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import icl
from icl.errors import InputError
from icl.models import Full, LinearTransformer, SparseA
from icl.random import generator
from icl.tasks import LinearRegression

LAW = {"dim": 2, "context": 5, "eigenvalues": [1.0, 0.25], "rotation": "none"}


def sampled(P: np.ndarray, Q: np.ndarray, **task: Any) -> tuple[float, float]:
    """Mean loss of fresh prompts and its standard error."""
    family = Full(2, len(P))
    family.load({"P": torch.from_numpy(P)[None], "Q": torch.from_numpy(Q)[None]})
    prompt = LinearRegression(**task).law([0]).gram_prompts([generator(0, "eval")], 200_000)
    loss_B = (LinearTransformer(family).predict(prompt) - prompt.target_RB)[0].detach().square()
    return float(loss_B.mean()), float(loss_B.std() / len(loss_B) ** 0.5)


def test_one_layer_against_a_large_sample() -> None:
    rng = np.random.default_rng(3)
    P, Q = 0.3 * rng.standard_normal((2, 3, 3))
    noisy = LAW | {"label_noise": 0.2, "prior_mean": [0.5, -1.0], "read_out": 1}
    mean, stderr = sampled(P[None], Q[None], **noisy)
    found = icl.exact_risk(P, Q, **noisy)
    assert abs(found - mean) < 5 * stderr < 0.1 * found
    assert (
        icl.exact_risk(P[None], Q[None], **noisy)
        == icl.exact_risk(P[None, None], Q[None, None], **noisy)
        == found
    )


def test_layers_of_eq_8_against_a_large_sample() -> None:
    rng = np.random.default_rng(4)
    A_LDD = 0.3 * np.eye(2) + 0.1 * rng.standard_normal((2, 2, 2))
    P, Q = np.zeros((2, 3, 3)), np.zeros((2, 3, 3))
    P[:, 2, 2], Q[:, :2, :2] = 1, -A_LDD
    mean, stderr = sampled(P, Q, **LAW)
    assert abs(icl.exact_risk(P, Q, **LAW) - mean) < 5 * stderr < 0.1 * mean
    family = SparseA(2, 2)
    family.load({"A": torch.from_numpy(A_LDD)[None]})
    family.requires_grad_(False)
    law = LinearRegression(**LAW).law([0])
    model = LinearTransformer(family)
    assert icl.exact_risk(P, Q, **LAW) == float(law.exact_risk(model)(model)[0])  # type: ignore[misc]


def test_where_no_exact_form_exists_it_says_so() -> None:
    P, Q = np.zeros((2, 3, 3)), np.zeros((2, 3, 3))
    P[:, 2, 2] = 1
    P[0, 0, 0] = 0.1  # B of eq. (11)
    with pytest.raises(InputError, match=r"no exact form .* one layer at dim <= 20, or sparse_a of 3"):
        icl.exact_risk(P, Q, **LAW)


@pytest.mark.parametrize(
    ("P", "Q", "task", "message"),
    [
        (np.eye(3), np.eye(4), {}, r"Q: has shape \(4, 4\), must have that of P"),
        (np.ones(3), np.eye(3), {}, r"P: has shape \(3,\), must be \(p, p\)"),
        (np.eye(3) * np.nan, np.eye(3), {}, "P: every entry must be a finite number"),
        (np.eye(3), np.eye(3), {"dim": 3}, "dim=3: must be 2, since P has 3 rows"),
        (np.eye(3), np.eye(3), {"kontext": 3}, "kontext"),
        (np.eye(3), np.eye(3), {"context": 0}, r"exact_risk\.context=0: must be an integer"),
    ],
)
def test_unusable(P: np.ndarray, Q: np.ndarray, task: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        icl.exact_risk(P, Q, **task)
