import numpy as np
import pytest
import torch

from icl.algorithms import LeastSquares, RidgeRegression
from icl.tasks import GramPrompt, LinearRegression
from tests.streams import streams

SEEDS = [0, 1]


def law(context, **options):
    return LinearRegression(5, context, **({"task_covariance": "inverse"} | options)).law(SEEDS)


def each(prompt):
    z, q = prompt.context_RBNP.numpy(), prompt.query_RBP.numpy()
    for r in range(z.shape[0]):
        for b in range(z.shape[1]):
            yield r, b, z[r, b, :, :-1], z[r, b, :, -1], q[r, b, :-1]


@pytest.mark.parametrize("context", [1, 3])
@pytest.mark.parametrize("white", [False, True])
def test_rounding_beyond_the_rank_is_not_inverted(context, white):
    task = law(context)
    prompt = task.gram_prompts(streams(SEEDS), 50)
    model = LeastSquares(context, task.Sigma_RDD if white else None)
    single = model.predict(prompt.to(torch.float32))
    assert float((single - model.predict(prompt)).abs().median()) < 1e-4


def test_dependent_tokens_do_not_explode():
    """Repeat one token three times: rank 1 where N says 3."""
    z = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    query = torch.tensor([[[0.3, -0.4, 0.0]]], dtype=torch.float64)
    prompt = GramPrompt(torch.outer(z, z)[None, None], query, torch.zeros(1, 1, dtype=torch.float64))
    w = np.linalg.lstsq(np.array([[1.0, 2.0]]), np.array([3.0]), rcond=None)[0]
    assert float(LeastSquares(3).predict(prompt)) == pytest.approx(w @ [0.3, -0.4], rel=1e-12)


@pytest.mark.parametrize("context", [3, 8])
def test_bayes_is_the_conditional_mean(context):
    """Condition the joint Gaussian of (y_q, y_1, ..., y_N) given all x as the second oracle."""
    noise = 0.4
    task = law(context, label_noise=noise, prior_mean=[1.0, 0.0, -1.0, 0.5, 0.2])
    prompt = task.token_prompts(streams(SEEDS), 20)
    predicted = RidgeRegression.bayes(noise, context, task.Sigma_w_RDD, task.mean_RD).predict(prompt)
    for r, b, x, y, x_q in each(prompt):
        K, mean = task.Sigma_w_RDD[r].numpy(), task.mean_RD[r].numpy()
        covariance = x @ K @ x.T + noise * np.eye(context)
        expected = mean @ x_q + x_q @ K @ x.T @ np.linalg.solve(covariance, y - x @ mean)
        assert float(predicted[r, b]) == pytest.approx(expected, rel=1e-9, abs=1e-10)
