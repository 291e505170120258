import pytest
import torch

from icl.checks.lds import toeplitz
from icl.checks.lds.support import population, sequences
from icl.random import generator
from icl.theory import dynamical_system as theory


def test_toeplitz_distance_by_simulation():
    law = sequences.law_of("a", 2, 20, 2, 0)
    (part,) = population.Population(law, 1000, 0).parts
    exact = toeplitz._relative_distance(theory.gram_moments(part, 2)[1], 2)
    G = law.gram_prompts([generator(0, "check")], 100_000).gram_RBPP[0]
    nearest = torch.zeros_like(G)
    for lag in range(-2, 3):
        index = torch.arange(max(0, -lag), 3 - max(0, lag))
        nearest[:, index, index + lag] = G[:, index, index + lag].mean(1, keepdim=True)
    sampled = ((G - nearest).square().sum() / G.square().sum()).sqrt()
    assert exact == pytest.approx(float(sampled), rel=0.05)
