from math import comb

import numpy as np
import pytest
import torch

from icl.algorithms import LeastSquares, NewtonIteration, newton_iteration
from icl.algorithms.newton import identity_start, transpose_start
from icl.random import generator
from icl.tasks import LinearRegression


def as_printed(A, X, order, steps):
    """Return eq. (3.4) with its binomial coefficients."""
    for _ in range(steps):
        terms = [(-1) ** m * comb(order, m + 1) * np.linalg.matrix_power(A @ X, m) for m in range(order)]
        X = X @ sum(terms)
    return X


@pytest.mark.parametrize("order", [2, 3, 5])
def test_is_eq_3_4_as_printed(order):
    rng = np.random.default_rng(order)
    A = rng.standard_normal((4, 4))
    X = 0.05 * rng.standard_normal((4, 4))
    got = newton_iteration(torch.from_numpy(A), torch.from_numpy(X), order, 2)[-1].numpy()
    np.testing.assert_allclose(got, as_printed(A, X, order, 2), rtol=1e-10, atol=1e-13)


def test_starts():
    A = torch.diag(torch.tensor([3.0, 1.0]).double())
    np.testing.assert_allclose(transpose_start(A[[1, 0]]).numpy(), np.array([[0, 0.3], [0.1, 0]]))
    np.testing.assert_allclose(identity_start(A).numpy(), 0.5 * np.eye(2))


@pytest.mark.parametrize("start", ["transpose", "identity"])
def test_predicts_least_squares_in_the_end(start):
    law = LinearRegression(4, 30).law([0, 1])
    prompt = law.token_prompts([generator(0, "check"), generator(1, "check")], 6)
    got = NewtonIteration(2, 40, start).predict(prompt)
    torch.testing.assert_close(got, LeastSquares(30).predict(prompt), rtol=1e-9, atol=1e-9)
    by_gram = NewtonIteration(2, 3, start).predict(prompt.gram())
    torch.testing.assert_close(NewtonIteration(2, 3, start).predict(prompt), by_gram)
    assert got.shape == (2, 6)
