import numpy as np
import pytest
import torch
from scipy.sparse.linalg import LinearOperator, cg

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


@pytest.mark.parametrize("steps", [1, 2, 3])
@pytest.mark.parametrize("preconditioned", [False, True])
def test_against_scipy(steps, preconditioned):
    prompt, P = prompts(), definite(4) if preconditioned else None
    S, g = split(prompt)
    found = ConjugateGradient(steps, P).weights(S, g)
    for b in range(6):
        M = None if P is None else LinearOperator((4, 4), matvec=lambda v: P.numpy() @ v)
        expected, _ = cg(S[0, b].numpy(), g[0, b].numpy(), rtol=0, atol=0, maxiter=steps, M=M)
        assert np.allclose(found[0, b].numpy(), expected, rtol=1e-8, atol=1e-12)


def test_as_many_steps_as_entries_reach_least_squares():
    prompt = prompts(3)
    steps = ConjugateGradient(3, definite(3)).predict(prompt)
    exact = LeastSquares(prompt.gram_RBPP.shape[-1] + 20).predict(prompt)
    assert torch.allclose(steps, exact, rtol=1e-6)
    solved = torch.linalg.solve(*split(prompt))
    assert torch.allclose((solved * prompt.query_RBP[..., :-1]).sum(-1), exact, rtol=1e-8)


def test_one_step_is_gradient_descent_with_the_exact_step():
    """At window 1 always: eta = 1 / S."""
    prompt = prompts(1)
    for b in range(6):
        eta = 1 / float(prompt.gram_RBPP[0, b, 0, 0])
        one = ConjugateGradient(2, 3.7 * torch.eye(1).double()).predict(prompt)[0, b]
        assert float(one) == pytest.approx(float(GradientDescent(eta, 1).predict(prompt)[0, b]), rel=1e-12)


def test_another_first_direction_by_hand():
    prompt, P, q = prompts(2), definite(2, 1), torch.tensor([0.7, -0.4]).double()
    S, g = split(prompt)
    w = ConjugateGradient(2, P, q).weights(S, g)
    for b in range(6):
        H, r0 = S[0, b], g[0, b]
        a0 = (r0 @ q) / (q @ H @ q)
        r1 = r0 - a0 * H @ q
        d1 = P @ r1 + (r1 @ P @ r1) / (r0 @ q) * q
        w2 = a0 * q + (r1 @ P @ r1) / (d1 @ H @ d1) * d1
        assert torch.allclose(w[0, b], w2, rtol=1e-9)


def test_stops_at_the_solution():
    S, g = torch.eye(2).double()[None, None], torch.ones(1, 1, 2).double()
    assert torch.equal(ConjugateGradient(5).weights(S, g), g)
