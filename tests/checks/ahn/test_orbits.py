from __future__ import annotations

import pytest
import torch

from icl.checks.ahn import orbits
from icl.checks.ahn.points_of_s import as_printed, gradient_as_printed, whitened
from icl.models.gram import sparse_expected_risk
from icl.random import generator
from icl.tasks import LinearRegression


@pytest.mark.parametrize("dim", range(1, 10))
def test_the_rotations_average_as_haar_does(dim):
    R = orbits.rotations(dim)
    X = torch.tensor(generator(dim, "check").standard_normal((dim, dim)))
    identity = torch.eye(dim, dtype=torch.float64)
    assert torch.allclose(R @ R.mT, identity.expand_as(R))
    assert torch.allclose((R.mT @ X @ R).mean(0), X.trace() / dim * identity, atol=1e-13)


@pytest.mark.parametrize("with_b", [False, True])
def test_risk_and_gradient_in_the_papers_coordinates(with_b):
    """Those of the same prompts in x = root u, w = root^{-T} v, root not symmetric."""
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
