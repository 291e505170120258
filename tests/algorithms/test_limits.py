"""Tests that what no algorithm can compute is refused, with the setting's name and value."""

import pytest
import torch

from icl.algorithms import (
    ConjugateGradient,
    Contexts,
    GradientDescent,
    KalmanFilter,
    LeastSquares,
    RidgeRegression,
    chebyshev_steps,
    newton_iteration,
    search_gd,
)
from icl.algorithms.coordinates import cholesky, moments
from icl.algorithms.newton import transpose_start
from icl.errors import InputError
from icl.random import generator
from icl.tasks import LinearRegression

LAW = LinearRegression(5, 7).law([0, 1])
STREAMS = [generator(seed, "check") for seed in (0, 1)]
PROMPT = LAW.token_prompts(STREAMS, 2)
CONTEXTS = Contexts(LAW.covariate_grams(STREAMS, 3), LAW.label_root_REK, LAW.query_root_RED)
EYE, ONE = torch.eye(5).double(), torch.eye(5)[None]
A, S, G = torch.ones(1, 2, 3, 3), torch.eye(2).double()[None, None], torch.ones(1, 1, 2).double()

REFUSED = [
    (lambda: GradientDescent(0.1, 0), r"algorithm\.layers=0"),
    (lambda: GradientDescent([0.1, 0.2], 3), r"algorithm\.eta: has shape \(2,\)"),
    (lambda: GradientDescent(float("nan"), 3), r"algorithm\.eta: every step size"),
    (lambda: GradientDescent(torch.zeros(3, 2), 2).predict(PROMPT), "eta for 3 replicas"),
    (lambda: chebyshev_steps(0.0, 1.0, 2), r"algorithm\.low=0"),
    (lambda: chebyshev_steps(2.0, 1.0, 2), r"algorithm\.high=1"),
    (lambda: LeastSquares(0), r"algorithm\.context=0"),
    (lambda: LeastSquares([3] * 3).predict(PROMPT), "context for 3 replicas"),
    (lambda: RidgeRegression(0.0), r"algorithm\.lam=0"),
    (lambda: RidgeRegression.bayes(0.0, 3), r"algorithm\.label_noise=0"),
    (lambda: RidgeRegression(1.0, mean_RD=torch.zeros(5)), r"algorithm\.mean"),
    (lambda: RidgeRegression(1.0, mean_RD=torch.zeros(1, 4)).predict(PROMPT), "4 entries"),
    (lambda: search_gd(CONTEXTS, 0), r"search\.layers=0"),
    (lambda: search_gd(CONTEXTS, 2, torch.eye(4).double()[None]), "4 covariates, contexts have 5"),
    (lambda: search_gd(CONTEXTS, 2, EYE.expand(3, 5, 5)), "covariances for 3 replicas"),
    (lambda: Contexts(torch.zeros(2, 5, 5), ONE, ONE), r"search\.S"),
    (lambda: Contexts(torch.zeros(2, 1, 5, 5), ONE, ONE), r"search\.label_root"),
    (lambda: moments(PROMPT, EYE.expand(3, 5, 5)), "3 replicas, prompts have 2"),
    (lambda: moments(PROMPT, torch.eye(4).double()[None]), "4 covariates, prompts have 5"),
    (lambda: cholesky("algorithm.Sigma", torch.eye(3)), r"algorithm\.Sigma"),
    (lambda: cholesky("algorithm.Sigma", -ONE), r"algorithm\.Sigma"),
    (lambda: cholesky("algorithm.Sigma", torch.tensor([[[1.0, 2.0], [0.0, 5.0]]])), r"algorithm\.Sigma"),
    (lambda: cholesky("algorithm.Sigma", torch.ones(1, 2, 2)), r"algorithm\.Sigma"),
    (lambda: KalmanFilter(A, A[..., 0], torch.eye(3)[None], 0.0, 0.01), "observation_noise"),
    (lambda: KalmanFilter(A, A[..., 0, :2], torch.eye(3)[None], 0.1, 0.01), "have shapes"),
    (lambda: ConjugateGradient(0), "steps"),
    (lambda: ConjugateGradient(1, first_D=torch.ones(3)).weights(S, G), r"algorithm.first: has 3"),
    (lambda: transpose_start(torch.zeros(2, 2)), "A is zero"),
    (lambda: newton_iteration(torch.eye(2), torch.eye(2), 1, 3), "order"),
]


@pytest.mark.parametrize(("make", "words"), REFUSED)
def test_refused(make, words):
    with pytest.raises(InputError, match=words):
        make()
