"""Tests of the exact risk of weights given as arrays."""

import numpy as np
import pytest
import torch

import icl
from icl.errors import InputError
from icl.models import Full, LinearTransformer, SparseA
from icl.tasks import LinearRegression

LAW = {"dim": 2, "context": 5, "eigenvalues": [1.0, 0.25], "rotation": "none"}


def of_law(family, weights, **task):
    """Return the risk by way of a model and its law, which tests/tasks/test_exact.py compares with
    prompts."""
    family.load({name: torch.from_numpy(matrix)[None] for name, matrix in weights.items()})
    model = LinearTransformer(family.requires_grad_(False))
    return float(LinearRegression(**task).law([0]).exact_risk(model)(model)[0])


def test_one_layer():
    P, Q = 0.3 * np.random.default_rng(3).standard_normal((2, 3, 3))
    noisy = LAW | {"label_noise": 0.2, "prior_mean": [0.5, -1.0], "read_out": 1}
    found = of_law(Full(2, 1), {"P": P[None], "Q": Q[None]}, **noisy)
    del noisy["rotation"]  # none unless given
    for given in ((P, Q), (P[None], Q[None]), (P[None, None], Q[None, None])):
        assert icl.exact_risk(*given, **noisy) == found


def test_layers_of_eq_8():
    A_LDD = 0.3 * np.eye(2) + 0.1 * np.random.default_rng(4).standard_normal((2, 2, 2))
    P, Q = np.zeros((2, 3, 3)), np.zeros((2, 3, 3))
    P[:, 2, 2], Q[:, :2, :2] = 1, -A_LDD
    assert icl.exact_risk(P, Q, **LAW) == of_law(SparseA(2, 2), {"A": A_LDD}, **LAW)


def test_where_no_exact_form_exists_it_says_so():
    P, Q = np.zeros((2, 3, 3)), np.zeros((2, 3, 3))
    P[:, 2, 2] = 1
    P[0, 0, 0] = 0.1  # B of eq. (11)
    with pytest.raises(InputError, match=r"no exact form .* one layer at dim <= 20, or sparse_a of 3"):
        icl.exact_risk(P, Q, **LAW)
