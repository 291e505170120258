"""Tests of what the law of linear regression is made of; prompts and risks are in test_every_law.py."""

import numpy as np
import pytest
import torch

from icl.errors import InputError
from icl.random import generator
from icl.tasks import LinearRegression
from icl.tasks.linear_regression import PAPER_EIGENVALUES, haar_orthogonal
from tests.streams import streams

SIGMAS = 5.0
COVARIANCE = [[2.0, 0.5], [0.5, 1.0]]
INVERSE = {"task_covariance": "inverse"}


def assert_mean(sample_BX, exact_X):
    error = (sample_BX.mean(0) - exact_X).abs()
    assert (error <= SIGMAS * sample_BX.std(0) / len(sample_BX) ** 0.5 + 1e-12).all(), error


LAWS = {
    "inverse": {"dim": 2, "context": 3, "eigenvalues": [1.0, 0.25], **INVERSE},
    "distorted": {"dim": 2, "context": 5, "distortion": [[1.0, 0.5], [0.0, 2.0]], **INVERSE},
}


GUESS = {"dim": 2, "covariance": COVARIANCE, "guess_vector": [0.5, -2.0], "guess_bias": 0.7}


def test_the_query_token_ends_with_the_guess():
    law = LinearRegression(**GUESS, prior_mean_norm=2.0).law([3, 4])
    assert law.guesses and not LinearRegression(2).law([0]).guesses
    query_RBP = law.gram_prompts(streams([3, 4]), 50_000).query_RBP
    x_RBD = query_RBP[..., :2]
    assert torch.allclose(query_RBP[..., 2], 0.5 * x_RBD[..., 0] - 2 * x_RBD[..., 1] + 0.7, rtol=1e-14)
    second_PP = law.query_token_root_RPK[1] @ law.query_token_root_RPK[1].T
    assert_mean(torch.einsum("bp,bq->bpq", query_RBP[1], query_RBP[1]).flatten(1), second_PP.flatten())
    without = LinearRegression(2, covariance=COVARIANCE, prior_mean_norm=2.0).law([3, 4])
    plain = without.gram_prompts(streams([3, 4]), 50_000)
    assert torch.equal(x_RBD, plain.query_RBP[..., :2]), "the guess must not move the stream"


def test_identity_is_exact_at_every_dimension():
    for dim in (2, 5):
        law = LinearRegression(dim, covariance="identity").law([0, 1])
        assert torch.equal(law.root_RDD, torch.eye(dim).double().expand(2, dim, dim))


def test_a_norm_stands_for_a_vector_along_ones():
    task = LinearRegression(4, prior_mean_norm=3.0, guess_vector_norm=1.0)
    assert task.prior_mean == [1.5] * 4 and task.guess_vector == [0.5] * 4
    assert LinearRegression(4, prior_mean_norm=0).prior_mean == [0.0] * 4


def test_second_moment_roots_of_label_and_query():
    law = LinearRegression(dim=2, covariance=COVARIANCE, label_noise=0.5, prior_mean=[1.0, -0.5]).law([0])
    V = law.label_root_REK[0] @ law.label_root_REK[0].T
    mean = law.mean_RD[0]
    assert torch.allclose(V[:2, :2], torch.eye(2).double() + torch.outer(mean, mean))
    assert torch.allclose(V[:2, 2], mean) and V[2, 2] == 1
    X = law.query_root_RED[0] @ law.query_root_RED[0].T
    assert torch.allclose(X[:2, :2], torch.tensor(COVARIANCE).double()) and (X[2] == 0).all()
    U = law.u_root_REE[0] @ law.u_root_REE[0].T
    assert torch.allclose(U[:2, :2], torch.tensor(COVARIANCE).double())
    assert U[2, 2].item() == pytest.approx(0.5) and (U[2, :2] == 0).all()


def test_defaults_are_the_papers_at_dim_5_and_ones_elsewhere():
    law, eigenvalues = LinearRegression().law([0, 1]), torch.tensor(PAPER_EIGENVALUES).double()
    assert torch.allclose(torch.linalg.eigvalsh(law.Sigma_RDD), eigenvalues.sort().values)
    assert not torch.allclose(law.Sigma_RDD[0], law.Sigma_RDD[1])
    assert torch.allclose(LinearRegression(dim=3).law([0]).Sigma_RDD[0], torch.eye(3).double())
    assert torch.equal(law.Sigma_w_RDD[0], torch.eye(5).double())
    straight = LinearRegression(rotation="none").law([4])
    assert torch.allclose(straight.Sigma_RDD[0], torch.diag(eigenvalues))


@pytest.mark.parametrize("name", ["inverse", "distorted"])
def test_inverse_task_covariance_and_the_distortion_as_the_factor_itself(name):
    law = LinearRegression(**LAWS[name]).law([0, 7])
    identity = torch.eye(law.dim).double()
    assert torch.allclose(law.Sigma_RDD @ law.Sigma_w_RDD, identity.expand(2, -1, -1), atol=1e-12)
    for U, Sigma in zip(law.U_RDD, law.Sigma_RDD, strict=True):
        diagonal = U.T @ Sigma @ U
        assert torch.allclose(diagonal, torch.diag(diagonal.diagonal()), atol=1e-12)
    if name == "distorted":
        assert torch.equal(law.root_RDD[0], torch.tensor(LAWS[name]["distortion"]).double())
        assert torch.allclose(law.task_root_RDD[0] @ law.root_RDD[0].T, identity, atol=1e-14)


def test_covariance_from_a_file(tmp_path):
    path = tmp_path / "Sigma.npy"
    np.save(path, np.array(COVARIANCE))
    from_file = LinearRegression(dim=2, covariance=str(path), task_covariance=str(path)).law([0])
    assert torch.allclose(from_file.Sigma_RDD[0], torch.tensor(COVARIANCE).double())
    assert torch.allclose(from_file.Sigma_w_RDD[0], torch.tensor(COVARIANCE).double())


def test_context_per_replica():
    law = LinearRegression(dim=2, context=[2, 50]).law([0, 1])
    S_RBDD = law.covariate_grams(streams([0, 1]), 20_000)
    for r, n in enumerate((2, 50)):
        assert_mean((S_RBDD[r, :, 0, 0] ** 2)[:, None], torch.tensor([1 + 2 / n]).double())
    with pytest.raises(InputError, match="token prompts need one length"):
        law.token_prompts(streams([0, 1]), 2)
    with pytest.raises(InputError, match="2 entries for 3 seeds"):
        LinearRegression(context=[2, 50]).law([0, 1, 2])


def test_haar_is_orthogonal_and_uniform():
    """Compare E tr U and E U_11^4: QR alone makes R's diagonal positive or negative by convention."""
    rng, dim, draws = generator(0, "check"), 3, 6000
    U_BDD = torch.stack([haar_orthogonal(rng, dim) for _ in range(draws)])
    assert torch.allclose(U_BDD @ U_BDD.mT, torch.eye(dim).double().expand(draws, -1, -1), atol=1e-13)
    assert_mean(U_BDD.flatten(1), torch.zeros(dim * dim).double())
    assert_mean((U_BDD**2).flatten(1), torch.full((dim * dim,), 1 / dim).double())
    assert_mean((U_BDD**4).flatten(1), torch.full((dim * dim,), 3 / (dim * (dim + 2))).double())
    assert_mean((U_BDD[:, 0, 0] * U_BDD[:, 1, 1])[:, None], torch.zeros(1).double())
    trace = U_BDD.diagonal(dim1=1, dim2=2).sum(1)
    assert_mean(trace[:, None] ** 2, torch.ones(1).double())
    assert_mean(torch.linalg.det(U_BDD)[:, None], torch.zeros(1).double())
