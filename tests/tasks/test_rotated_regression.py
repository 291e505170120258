"""Tests of rotated regression: the risk of one layer with any matrix is its mean over rotations."""

import numpy as np
import pytest
import torch

from icl.errors import InputError
from icl.models import LinearTransformer, SparseA
from icl.random import generator
from icl.tasks import RotatedRegression

SIGMAS, SEEDS, DRAWS = 5.0, (0, 1), 60
SPREAD = {"eigenvalues": [1.0, 1e-9], "task_eigenvalues": [1.0, 1e9]}
CASES = [
    {"dim": 1, "context": 1},
    {"dim": 2, "context": 1, "nu": 0.0, "beta": 0.0},
    {"dim": 2, "context": 3, **SPREAD},
    {"dim": 3, "context": 2, "nu": 3.0, "beta": 0.1},
    {"dim": 5, "context": 30, "task_eigenvalues": [0.0, 1.0, 0.0, 2.0, 0.5]},
    {"dim": 8, "context": 10**12},
]
EACH = pytest.mark.parametrize("settings", CASES, ids=str)


def estimate(task, A_LDD):
    """Return the mean of the estimate with task and query integrated out, and its standard error."""
    model = LinearTransformer(SparseA(task.dim, len(A_LDD)), seeds=SEEDS)
    model.parametrization.load({"A": torch.tensor(np.stack([A_LDD, A_LDD]))})
    estimator = task.law(SEEDS).estimators(model)["expected"]()
    with torch.no_grad():
        draws = [estimator.draw([generator(s, "eval", k) for s in SEEDS], 500) for k in range(DRAWS)]
        risks = torch.cat([estimator.risk(model, draw) for draw in draws])
    return float(risks.mean()), float(risks.std()) / len(risks) ** 0.5


@EACH
def test_one_layer_with_any_matrix_has_its_mean_over_rotations(settings):
    """Compare with E tr Omega (I - S A) Sigma (I - S A)^T, by E S Omega S = (1 + 1/P) Sigma Omega Sigma + tr
    (Omega Sigma) Sigma / P and the second moments of a Haar matrix."""
    task, D = RotatedRegression(**settings), settings["dim"]
    lam, omega, P = np.array(task.eigenvalues), np.array(task.task_eigenvalues), task.context
    A_DD = 0.4 * np.random.default_rng(3).standard_normal((D, D))

    def crossed(x_D, y_D):
        """Return the mean of tr X A Y A^T over rotations of both together."""
        both, same = x_D.sum() * y_D.sum(), (x_D * y_D).sum()
        b = (same - both / D) / max(D * D + D - 2, 1)
        a = (both - 2 * b * D) / D**2
        return a * (A_DD**2).sum() + b * (np.trace(A_DD @ A_DD) + np.trace(A_DD) ** 2)

    exact = (omega * lam).sum() - 2 * (omega * lam**2).sum() * np.trace(A_DD) / D
    exact += (1 + 1 / P) * crossed(lam**2 * omega, lam) + (omega * lam).sum() / P * crossed(lam, lam)
    mean, error = estimate(task, A_DD[None])
    assert abs(mean - exact / D) <= SIGMAS * error and error < 0.1 * exact / D


def test_the_risk_at_zero_is_one_and_settings_are_refused():
    assert estimate(RotatedRegression(7, 3), np.zeros((1, 7, 7)))[0] == pytest.approx(1)
    for settings in ({"dim": 0}, {"eigenvalues": [1.0]}, {"nu": -1}, {"dim": 9, "nu": 400}, {"context": 1.5}):
        with pytest.raises(InputError, match=r"task\."):
            RotatedRegression(**settings)
