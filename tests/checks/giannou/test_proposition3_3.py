import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar

from icl.algorithms import LogisticLoss
from icl.checks.giannou.proposition3_3 import Proposition3_3
from icl.checks.giannou.support.concordance import ratio, supremum_of_ratio
from tests.checks.asking import held


@pytest.mark.parametrize("mu", [1e-4, 0.1, 3.0, 100.0])
def test_the_supremum_is_one_of_a_single_variable(mu):
    by_scipy = minimize_scalar(
        lambda q: -q * np.sqrt(1 - 4 * q) / (q + mu) ** 1.5,
        bounds=(0, 0.25),
        options={"xatol": 1e-14},
        method="bounded",
    )
    assert supremum_of_ratio(mu) == pytest.approx(-by_scipy.fun, rel=1e-9)
    finding = held(Proposition3_3(mu=mu, samples=1))
    assert finding.measured["supremum"] < finding.measured["claim_standard"] < finding.measured["claim_M_f"]


def test_the_ratio_against_autograd():
    rng = np.random.default_rng(0)
    A, x, u = rng.standard_normal((4, 3)), rng.standard_normal(3), rng.standard_normal(3)
    u /= np.linalg.norm(u)
    loss = LogisticLoss(torch.from_numpy(A)[None], torch.ones(1, 4).double(), 0.3)
    derivative = t = torch.zeros((), dtype=torch.float64, requires_grad=True)
    derivative = loss.value((torch.from_numpy(x) + t * torch.from_numpy(u))[None])[0]
    orders = []
    for _ in range(3):
        (derivative,) = torch.autograd.grad(derivative, t, create_graph=True)
        orders.append(float(derivative.detach()))
    assert ratio(A, x, u, 0.3) == pytest.approx(abs(orders[2]) / orders[1] ** 1.5, rel=1e-10)
