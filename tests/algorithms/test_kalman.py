import numpy as np
import pytest
import torch
from scipy.linalg import solve_discrete_are

from icl.algorithms import KalmanFilter
from icl.random import generator
from icl.tasks import DynamicalSystem


@pytest.fixture
def case():
    law = DynamicalSystem(setting="d", dim=3, length=12).law([0])
    systems = law.systems([generator(0, "check")], 5)
    return law, systems, KalmanFilter(systems.A_RBDD, systems.c_RBD, law.Sigma_w_RDD, 0.01, 0.01)


def test_the_variance_tends_to_that_of_riccatis_equation(case):
    law, systems, kalman = case
    _, variance = kalman.forecasts(torch.zeros(1, 5, 400, dtype=torch.float64))
    for b in range(5):
        A, c = systems.A_RBDD[0, b].numpy(), systems.c_RBD[0, b].numpy()[:, None]
        P = solve_discrete_are(A.T, c, law.Sigma_w_RDD[0].numpy(), np.array([[0.01]]))
        assert float(variance[0, b, -1]) == pytest.approx((c.T @ P @ c).item() + 0.01, rel=1e-7)


def test_a_gain_that_is_held_fixed(case):
    law, systems, kalman = case
    y = law.observations(systems, [generator(1, "check")])
    frozen, full = kalman.forecasts(y, steps=11)[0], kalman.forecasts(y)[0]
    assert torch.equal(frozen[..., :11], full[..., :11])
    assert torch.allclose(frozen, full, atol=1e-3)
    assert not torch.equal(kalman.forecasts(y, steps=2)[0], full)
