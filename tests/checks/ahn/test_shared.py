"""Tests of what ahn's checks share: settings, searches, descents of many starts, averages over rotations."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.optimize import rosen

from icl.checks.ahn.lemma1 import Lemma1
from icl.checks.ahn.lemma4 import Lemma4
from icl.checks.ahn.support import orbits, search
from icl.checks.ahn.support.critical_set import as_printed, gradient_as_printed, whitened
from icl.checks.ahn.support.ensemble import descend_each
from icl.checks.ahn.theorem1 import Theorem1
from icl.checks.ahn.theorem3 import Theorem3
from icl.models.gram import sparse_expected_risk
from icl.random import generator
from icl.tasks import LinearRegression


@pytest.mark.parametrize(
    ("check", "inverse"), [(Lemma1, False), (Theorem1, False), (Lemma4, True), (Theorem3, True)]
)
def test_w_has_the_covariance_that_the_statement_takes(check, inverse):
    law = check(dim=2, covariance=[[2, 1], [1, 1]]).law
    Sigma_w = law.Sigma_RDD[0].inverse() if inverse else law.Sigma_RDD.new_ones(2).diag()
    assert law.Sigma_w_RDD[0].allclose(Sigma_w)


@pytest.mark.parametrize("family", search.FAMILIES)
def test_finds_the_nearest_matrix_of_the_family(family):
    V = search.basis(family, 3).flatten(1)
    torch.testing.assert_close(V @ V.T, torch.eye(len(V), dtype=torch.float64))
    target = torch.tensor(generator(0, "check").standard_normal((2, 3, 3)))
    projected = {
        "diagonal": target.diagonal(dim1=1, dim2=2).diag_embed(),
        "symmetric": (target + target.mT) / 2,
        "free": target,
    }[family]

    def risk(A):
        return (A - target).square().sum((-1, -2, -3)) + 1

    start = torch.eye(3, dtype=torch.float64).expand(2, 3, 3)
    found = search.search(family, risk, [start], 2, generator(0, "search"))
    torch.testing.assert_close(found.A_LDD, projected)
    assert found.risk == pytest.approx(float(risk(projected)), rel=1e-12)
    assert found.accuracy < 1e-20 and found.spread < 1e-8


def test_knows_nothing_at_a_saddle():
    theta = torch.zeros(2, 1, dtype=torch.float64)
    _, gain = search.polish(lambda t: t[0, 0] ** 2 - t[1, 0] ** 2, theta)
    assert gain == float("inf")


def rosenbrock(theta_KV, index):
    x, y = theta_KV[:, :-1], theta_KV[:, 1:]
    return (100 * (y - x.square()).square() + (1 - x).square()).sum(1)


def test_every_row_finds_its_own_minimum():
    start_KV = torch.from_numpy(np.random.default_rng(0).uniform(-1, 1.5, (6, 4)))
    end_KV, value_K, _ = descend_each(rosenbrock, start_KV, 200)
    for end_V, value in zip(end_KV, value_K, strict=True):
        assert float(value) == float(torch.tensor(rosen(end_V.numpy()))) or value < 1e-12
    # Rosenbrock's function of 4 variables has a second, local minimum near (-1, 1, 1, 1).
    local_K = end_KV[:, 0] < 0
    torch.testing.assert_close(
        end_KV[~local_K], torch.ones(int((~local_K).sum()), 4).double(), atol=1e-5, rtol=0
    )


def test_rows_do_not_know_of_each_other():
    start_KV = torch.from_numpy(np.random.default_rng(1).uniform(-1, 1.5, (5, 3)))
    together, *_ = descend_each(rosenbrock, start_KV, 15)
    alone = torch.cat([descend_each(rosenbrock, row_V[None], 15)[0] for row_V in start_KV])
    torch.testing.assert_close(together, alone, rtol=1e-6, atol=1e-8)


def test_no_step_raises_a_value_and_a_row_without_a_finite_one_stays():
    def risk(theta_KV, index):
        value_K = theta_KV.pow(4).sum(1)
        return torch.where(index == 1, value_K * float("nan"), value_K)

    start_KV = torch.full((2, 2), 2.0).double()
    values = [descend_each(risk, start_KV, steps)[1][0] for steps in range(1, 6)]
    assert all(after <= before for before, after in pairwise(values))
    assert torch.equal(descend_each(risk, start_KV, 5)[0][1], start_KV[1])


def test_rows_are_told_apart_where_only_some_are_tried_again():
    """Give each row its own function, by index; the first steps of steep ones are halved, others' not."""
    scale_K = torch.tensor([1.0, 1e4, 1e-3]).double()

    def risk(theta_KV, index):
        return (scale_K[index, None] * (theta_KV - index[:, None]).pow(4)).sum(1)

    end_KV, *_ = descend_each(risk, torch.full((3, 2), 5.0).double(), 60)
    torch.testing.assert_close(end_KV, torch.arange(3.0).double()[:, None].expand(-1, 2), atol=1e-2, rtol=0)


@pytest.mark.parametrize("dim", range(1, 10))
def test_the_rotations_average_as_haar_does(dim):
    R = orbits.rotations(dim)
    X = torch.tensor(generator(dim, "check").standard_normal((dim, dim)))
    identity = torch.eye(dim, dtype=torch.float64)
    assert torch.allclose(R @ R.mT, identity.expand_as(R))
    assert torch.allclose((R.mT @ X @ R).mean(0), X.trace() / dim * identity, atol=1e-13)


@pytest.mark.parametrize("with_b", [False, True])
def test_risk_and_gradient_in_the_papers_coordinates(with_b):
    """Compare with the same prompts in x = root u, w = root^{-T} v, root not symmetric."""
    law = LinearRegression(2, 4, distortion=[[1, 2], [0, 1]], task_covariance="inverse").law([0])
    rng = generator(0, "check")
    A, B = (0.1 * torch.tensor(rng.standard_normal((layers, 2, 2))) for layers in (3, 2))
    W, root = orbits.whitened_prompts(law, rng, 5), law.root_RDD[0]
    stack = (A.requires_grad_(), B.requires_grad_() if with_b else None)
    white_risk, white = orbits.prompt_gradients(whitened(stack, law), W[None])
    S = (root @ W @ root.mT).movedim(0, -1)[None].contiguous()
    printed = [M[None] for M in stack if M is not None]
    risk = sparse_expected_risk(printed[0], printed[1] if with_b else None, S, law.task_root_RDD, root[None])
    assert torch.allclose(risk, white_risk, rtol=1e-12)
    leaves = [M for M in stack if M is not None]
    gradient = torch.cat(torch.autograd.grad(risk.mean(), leaves))
    assert torch.allclose(gradient_as_printed(white, 3, law)[0], gradient, rtol=1e-10)
    for matrices, again in zip(stack, as_printed(whitened(stack, law), law), strict=True):
        assert matrices is None or torch.allclose(matrices, again, rtol=1e-12)


def test_a_deviation_shows_the_error_nearest_to_its_bound():
    found = torch.diag_embed(torch.tensor([[1.0, 1.1], [1.0, 1.2]]).double())[None]
    plus = torch.eye(2).double() * torch.tensor([1.0, 1e6]).double()[None, :, None, None]
    error = orbits.deviation(found, plus, None).off_direction
    assert error.value == pytest.approx(0.05 * 2**0.5 / (1 + 1.1**2) ** 0.5)  # not the larger one
    assert error.bound < 1e-12 < error.blind
    assert error.largest == pytest.approx(0.1 * 2**0.5 / (1 + 1.2**2) ** 0.5)
