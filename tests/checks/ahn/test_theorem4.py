from dataclasses import replace

import pytest
import torch

from icl.checks.ahn.support import token_stacks
from icl.checks.ahn.theorem4 import Theorem4
from icl.checks.verdict import Weights
from icl.random import generator
from icl.tasks import LinearRegression
from icl.theory.ahn.invariant_risk import InvariantRisk
from tests.checks.asking import elsewhere, held, refuses

pytestmark = pytest.mark.usefixtures("few_steps")

SMALL = {"samples": 1000, "starts": 6}


def test_a_batch_hides_the_risk_at_a_nearby_point(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(token_stacks, "BUDGET", 10_000_000)
    measured = Theorem4(samples=1000, starts=16).measure().measured
    assert measured["nearby_batch_loss_20000"] < measured["batch_loss_20000"]
    assert measured["nearby_risk_over_batch_loss"] > 10 * measured["risk_over_batch_loss"]


def weights_near_s(layers, place=0, noise=0.0):
    law = LinearRegression(3, 8, eigenvalues=[2, 1, 0.25], task_covariance="inverse").law([0, 1])
    risk = InvariantRisk(3, 8, layers, with_b=True)
    minimum = risk.minimise(generator(0, "search"), 8)[place]
    A = -torch.tensor(minimum.a_L)[:, None, None] * torch.linalg.inv(law.Sigma_RDD)[:, None]
    b = torch.tensor(minimum.b_L)[None, :, None, None].expand(2, -1, -1, -1)
    B = b * torch.eye(3, dtype=torch.float64)
    rng = generator(0, "control")
    A, B = (M * (1 + noise * torch.tensor(rng.standard_normal(M.shape))) for M in (A, B))
    return Weights("sparse_ab", {"A": A, "B": B} if layers > 1 else {"A": A}, law)


@pytest.mark.parametrize(("layers", "place"), [(1, 0), (2, 0), (2, 1)])
def test_judges_weights_by_distance_and_risk(layers, place):
    check = Theorem4(**SMALL)
    near = held(check, weights_near_s(layers, place, 0.003))
    assert (near.measured["risk_excess_over_best"] > 0.02) == (place > 0)
    elsewhere(check.judge(weights_near_s(layers, place, 0.5)))
    scaled = weights_near_s(layers, place)
    assert check.judge(scaled).measured["gradient_norm"] < 1e-9
    scaled = replace(scaled, matrices=scaled.matrices | {"A": 1.3 * scaled.matrices["A"]})
    elsewhere(check.judge(scaled))


def test_weights_the_theorem_does_not_speak_of_are_refused():
    refuses(Theorem4(**SMALL), (replace(weights_near_s(2), family="sparse_a"), "sparse_a "))
