import numpy as np
import pytest
import scipy.linalg
import torch

from icl.algorithms import LeastSquares, RidgeRegression
from icl.random import generator
from icl.tasks import GramPrompt, LinearRegression

SEEDS = [0, 1]


def law(context, **options):
    return LinearRegression(5, context, **({"task_covariance": "inverse"} | options)).law(SEEDS)


def streams():
    return [generator(seed, "check") for seed in SEEDS]


def each(prompt):
    z, q = prompt.context_RBNP.numpy(), prompt.query_RBP.numpy()
    for r in range(z.shape[0]):
        for b in range(z.shape[1]):
            yield r, b, z[r, b, :, :-1], z[r, b, :, -1], q[r, b, :-1]


@pytest.mark.parametrize("context", [1, 2, 4, 5, 6, 20])
@pytest.mark.parametrize("white", [False, True])
@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_against_lstsq_of_every_prompt(context, white, noise):
    task = law(context, label_noise=noise)
    prompt = task.token_prompts(streams(), 40)
    predicted = LeastSquares(context, task.Sigma_RDD if white else None).predict(prompt)
    for r, b, x, y, x_q in each(prompt):
        root = scipy.linalg.sqrtm(task.Sigma_RDD[r].numpy()) if white else np.eye(5)
        w = np.linalg.solve(root, np.linalg.lstsq(np.linalg.solve(root, x.T).T, y, rcond=None)[0])
        # the normal equations square the condition number
        tolerance = 1e-14 * np.linalg.cond(x) ** 2 * (1 + np.linalg.norm(w) * np.linalg.norm(x_q))
        assert float(predicted[r, b]) == pytest.approx(w @ x_q, rel=1e-9, abs=100 * tolerance)


@pytest.mark.parametrize("context", [1, 3])
@pytest.mark.parametrize("white", [False, True])
def test_rounding_beyond_the_rank_is_not_inverted(context, white):
    task = law(context)
    prompt = task.gram_prompts(streams(), 50)
    model = LeastSquares(context, task.Sigma_RDD if white else None)
    single = model.predict(prompt.to(torch.float32))
    assert float((single - model.predict(prompt)).abs().median()) < 1e-4


def test_dependent_tokens_do_not_explode():
    """Three copies of one token: rank 1 where N says 3."""
    z = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    query = torch.tensor([[[0.3, -0.4, 0.0]]], dtype=torch.float64)
    prompt = GramPrompt(torch.outer(z, z)[None, None], query, torch.zeros(1, 1, dtype=torch.float64))
    w = np.linalg.lstsq(np.array([[1.0, 2.0]]), np.array([3.0]), rcond=None)[0]
    assert float(LeastSquares(3).predict(prompt)) == pytest.approx(w @ [0.3, -0.4], rel=1e-12)


@pytest.mark.parametrize("context", [2, 12])
def test_ridge_against_augmented_lstsq(context):
    """Penalty rows sqrt(N lam) L^{-1} (w - mean), Sigma_w = L L^T, added to the examples."""
    task = law(context, label_noise=0.2, prior_mean=[1.0, 0.0, -1.0, 0.5, 0.2])
    prompt = task.token_prompts(streams(), 20)
    lam = [0.3, 0.05]
    plain = RidgeRegression(lam).predict(prompt)
    full = RidgeRegression(lam, task.Sigma_w_RDD, task.mean_RD).predict(prompt)
    for r, b, x, y, x_q in each(prompt):
        weight = (context * lam[r]) ** 0.5
        rows = weight * np.linalg.inv(np.linalg.cholesky(task.Sigma_w_RDD[r].numpy()))
        for predicted, penalty, centre in (
            (plain, weight * np.eye(5), np.zeros(5)),
            (full, rows, task.mean_RD[r].numpy()),
        ):
            X, Y = np.vstack([x, penalty]), np.concatenate([y, penalty @ centre])
            w = np.linalg.lstsq(X, Y, rcond=None)[0]
            assert float(predicted[r, b]) == pytest.approx(w @ x_q, rel=1e-9, abs=1e-10)


@pytest.mark.parametrize("context", [3, 8])
def test_bayes_is_the_conditional_mean_and_tends_to_minimum_norm(context):
    """The second oracle conditions the joint Gaussian of (y_q, y_1, ..., y_N) given all x."""
    noise = 0.4
    task = law(context, label_noise=noise, prior_mean=[1.0, 0.0, -1.0, 0.5, 0.2])
    prompt = task.token_prompts(streams(), 20)
    predicted = RidgeRegression.bayes(noise, context, task.Sigma_w_RDD, task.mean_RD).predict(prompt)
    for r, b, x, y, x_q in each(prompt):
        K, mean = task.Sigma_w_RDD[r].numpy(), task.mean_RD[r].numpy()
        covariance = x @ K @ x.T + noise * np.eye(context)
        expected = mean @ x_q + x_q @ K @ x.T @ np.linalg.solve(covariance, y - x @ mean)
        assert float(predicted[r, b]) == pytest.approx(expected, rel=1e-9, abs=1e-10)
    noiseless = law(3)
    prompt = noiseless.gram_prompts(streams(), 50)
    limit = RidgeRegression.bayes(1e-9, 3, noiseless.Sigma_w_RDD).predict(prompt)
    by_norm = LeastSquares(3, noiseless.Sigma_RDD).predict(prompt)
    torch.testing.assert_close(limit, by_norm, rtol=1e-4, atol=1e-4)


def test_prompts_that_share_a_context_are_answered_like_others():
    """In runs, and where a context comes again later; of two replicas only one may repeat."""
    its = law([7, 2])
    prompt = its.gram_prompts(streams(), 6)
    gram = prompt.gram_RBPP.clone()
    gram[:, 2], gram[:, 5] = gram[:, 1], gram[:, 0]
    gram[0, 4] = gram[0, 3]
    together = GramPrompt(gram, prompt.query_RBP, prompt.target_RB, prompt.read_out)
    one_by_one = [
        GramPrompt(gram[:, b], prompt.query_RBP[:, b], prompt.target_RB[:, b], prompt.read_out)
        for b in torch.arange(6).split(1)
    ]
    for method in (LeastSquares([7, 2]), LeastSquares([7, 2], its.Sigma_RDD)):
        alone_RB = torch.cat([method.predict(one) for one in one_by_one], dim=1)
        torch.testing.assert_close(method.predict(together), alone_RB, rtol=1e-12, atol=1e-12)
