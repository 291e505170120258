import numpy as np
import pytest
import torch
from scipy.linalg import solve_discrete_are

from icl.algorithms import KalmanFilter
from icl.random import generator
from icl.tasks import DynamicalSystem
from icl.theory.dynamical_system import covariances_of_systems


def case(setting):
    law = DynamicalSystem(setting=setting, dim=3, length=12).law([0])
    systems = law.systems([generator(0, "check")], 5)
    y = law.observations(systems, [generator(1, "check")])
    return law, systems, y, KalmanFilter(systems.A_RBDD, systems.c_RBD, law.Sigma_w_RDD, 0.01, 0.01)


@pytest.mark.parametrize("setting", ["a", "c", "d"])
def test_is_conditioning_on_the_joint_gaussian(setting):
    law, systems, y, kalman = case(setting)
    mean, variance = kalman.forecasts(y)
    C = covariances_of_systems(
        systems.A_RBDD[0], systems.c_RBD[0], law.Sigma_w_RDD[0], 0.01, 0.01, law.length
    )
    for b in range(5):
        for t in range(12):
            past, cross = C[b, :t, :t], C[b, t, :t]
            weights = torch.linalg.solve(past, cross) if t else cross
            assert float(mean[0, b, t]) == pytest.approx(float(weights @ y[0, b, :t]), rel=1e-7, abs=1e-9)
            assert float(variance[0, b, t]) == pytest.approx(float(C[b, t, t] - weights @ cross), rel=1e-7)
    assert torch.equal(kalman.predict_last(y), mean[..., -1])


def test_steady_state_against_scipy():
    law, systems, _, kalman = case("d")
    gain, P = kalman.steady_state()
    for b in range(5):
        A, c = systems.A_RBDD[0, b].numpy(), systems.c_RBD[0, b].numpy()[:, None]
        expected = solve_discrete_are(A.T, c, law.Sigma_w_RDD[0].numpy(), np.array([[0.01]]))
        assert np.allclose(P[0, b].numpy(), expected, rtol=1e-7, atol=1e-12)
        steady = (expected @ c)[:, 0] / ((c.T @ expected @ c).item() + 0.01)
        assert np.allclose(gain[0, b].numpy(), steady, rtol=1e-6)


def test_the_gain_tends_to_the_steady_one():
    _, _, y, kalman = case("d")
    frozen, _ = kalman.forecasts(y, steps=11)
    full, _ = kalman.forecasts(y)
    assert torch.equal(frozen[..., :11], full[..., :11])
    assert torch.allclose(frozen, full, atol=1e-3)
