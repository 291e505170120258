from __future__ import annotations

import pytest
import torch

from icl.checks.ahn import orbits
from icl.random import generator
from icl.tasks import LinearRegression


@pytest.mark.parametrize("dim", range(1, 10))
def test_the_rotations_average_as_haar_does(dim):
    R = orbits.rotations(dim)
    X = torch.tensor(generator(dim, "check").standard_normal((dim, dim)))
    identity = torch.eye(dim, dtype=torch.float64)
    assert torch.allclose(R @ R.mT, identity.expand_as(R))
    assert torch.allclose((R.mT @ X @ R).mean(0), X.trace() / dim * identity, atol=1e-13)


def test_whitened_gradients_by_finite_differences():
    """Of the mean risk of the same prompts, in the coordinates root^T A root and root^{-1} B root."""
    law = LinearRegression(2, 4, distortion=[[1, 2], [0, 1]], task_covariance="inverse").law([0])
    rng = generator(0, "check")
    A, B = (0.1 * torch.tensor(rng.standard_normal((layers, 2, 2))) for layers in (2, 1))
    W = orbits.whitened_prompts(law, rng, 5)[None]
    root, inverse = law.root_RDD[0], law.task_root_RDD[0]
    _, gradient = orbits.prompt_gradients((A, B), W, law)
    white = orbits.whitened(gradient, 2, law)[0]
    for matrix in range(3):
        for entry in [(0, 0), (0, 1), (1, 0)]:
            unit = torch.zeros(2, 2, dtype=torch.float64)
            unit[entry] = 1e-5
            step = torch.zeros(3, 2, 2, dtype=torch.float64)
            step[matrix] = inverse @ unit @ inverse.mT if matrix < 2 else root @ unit @ inverse.mT
            up, down = (
                orbits.prompt_gradients((A + sign * step[:2], B + sign * step[2:]), W, law)[0].mean()
                for sign in (1, -1)
            )
            slope = float(up - down) / 2e-5
            assert slope == pytest.approx(float(white[matrix][entry]), rel=1e-6, abs=1e-9)
