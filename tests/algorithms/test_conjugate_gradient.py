import numpy as np
import pytest
import torch

from icl.algorithms import ConjugateGradient, GradientDescent, LeastSquares
from icl.random import generator
from icl.tasks import DynamicalSystem
from icl.tasks.dynamical_system import gram_prompts


def prompts(window=4):
    law = DynamicalSystem(window=window).law([0])
    return gram_prompts(law.sequences([generator(0, "check")], 6), window)


def split(prompt):
    G = prompt.gram_RBPP
    return G[..., :-1, :-1], G[..., -1, :-1]


def definite(D, seed=0):
    root = torch.from_numpy(np.random.default_rng(seed).standard_normal((D, D)))
    return root @ root.T + 0.5 * torch.eye(D).double()


def test_as_many_steps_as_entries_reach_least_squares():
    prompt = prompts(3)
    steps = ConjugateGradient(3, definite(3)).predict(prompt)
    exact = LeastSquares(prompt.gram_RBPP.shape[-1] + 20).predict(prompt)
    assert torch.allclose(steps, exact, rtol=1e-6)
    solved = torch.linalg.solve(*split(prompt))
    assert torch.allclose((solved * prompt.query_RBP[..., :-1]).sum(-1), exact, rtol=1e-8)


def test_one_step_is_gradient_descent_with_the_exact_step():
    """Compare with eta = 1 / S, which is also the step at window 1 from then on."""
    prompt = prompts(1)
    for b in range(6):
        eta = 1 / float(prompt.gram_RBPP[0, b, 0, 0])
        one = ConjugateGradient(2, 3.7 * torch.eye(1).double()).predict(prompt)[0, b]
        assert float(one) == pytest.approx(float(GradientDescent(eta, 1).predict(prompt)[0, b]), rel=1e-12)


def test_stops_at_the_solution():
    S, g = torch.eye(2).double()[None, None], torch.ones(1, 1, 2).double()
    assert torch.equal(ConjugateGradient(5).weights(S, g), g)
