"""Given weights against the critical points of Theorems 3 and 4."""

from dataclasses import replace

import pytest
import torch
from flint import fmpq

from icl.checks.ahn.theorem3 import Theorem3
from icl.checks.ahn.theorem4 import Theorem4
from icl.checks.given import EXCESS, Given, Weights, distance, judge
from icl.errors import InputError
from icl.random import generator
from icl.tasks import LinearRegression
from icl.theory.ahn.invariant_risk import InvariantRisk
from icl.theory.rationals import matrix, unit

LAW = LinearRegression(3, 8, eigenvalues=[2, 1, 0.25], task_covariance="inverse").law([0, 1])


def disturbed(matrices, noise):
    rng = generator(0, "control")
    return {
        name: M * (1 + noise * torch.tensor(rng.standard_normal(M.shape))) for name, M in matrices.items()
    }


def of_theorem_3(layers, noise=0.0):
    a_L = torch.tensor(InvariantRisk(3, 8, layers).optimum().a_L).flip(0)
    A = a_L[:, None, None] * torch.linalg.inv(LAW.Sigma_RDD)[:, None]
    return Weights("sparse_a", disturbed({"A": A}, noise), LAW)


@pytest.mark.parametrize("layers", [1, 3])
def test_weights_at_the_optimum_on_s_hold_in_any_order_and_others_are_elsewhere(layers):
    near = judge(Theorem3(), of_theorem_3(layers, 0.003))
    assert near.verdict == "holds", near.reasons
    assert len(near.numbers["risk_by_seed"].value) == 2
    far, longer = of_theorem_3(layers, 0.5), of_theorem_3(layers)
    longer = replace(longer, matrices={"A": 1.3 * longer.matrices["A"]})
    for weights, names in ((far, ("distance", "risk_excess")), (longer, ("risk_excess",))):
        found = judge(Theorem3(), weights)
        assert found.verdict == "undecided"
        assert all(f"({name} " in reason for name, reason in zip(names, found.open, strict=True))


def test_the_risk_at_the_optimum_is_the_least_and_the_control_is_of_half_the_last_matrix():
    weights = of_theorem_3(3)
    found = judge(Theorem3(), weights)
    half = judge(Theorem3(), replace(weights, matrices={"A": weights.matrices["A"] / 2}))
    excess = float(half.numbers["risk_excess"].value / EXCESS)
    assert float(found.controls[0].value) == pytest.approx(excess - 1)
    assert float(found.numbers["risk_by_seed"].value[0]) == pytest.approx(
        InvariantRisk(3, 8, 3).optimum().risk, rel=1e-12
    )
    assert abs(float(found.numbers["distance"].value)) < 1e-7


def test_weights_that_the_theorem_does_not_speak_of_are_refused():
    weights = of_theorem_3(2)
    other = LinearRegression(3, 8, eigenvalues=[2, 1, 0.25]).law([0, 1])
    for wrong, words in (
        (replace(weights, family="sparse_ab"), "sparse_ab"),
        (replace(weights, activation="relu"), "relu"),
        (replace(weights, law=other), r"Sigma\^1/2 w"),
        (replace(weights, law=replace(weights.law, read_out=1)), "read_out"),
        (replace(weights, law=replace(weights.law, label_noise=0.1)), "without noise"),
        (replace(weights, law=replace(weights.law, mean_RD=weights.law.mean_RD + 1)), "w of mean 0"),
        (of_theorem_3(5), "have 5 layers"),
    ):
        with pytest.raises(InputError, match=words):
            judge(Theorem3(), wrong)


def test_weights_that_are_not_finite_leave_it_open():
    weights = of_theorem_3(1)
    found = judge(Theorem3(), replace(weights, matrices={"A": weights.matrices["A"] * float("nan")}))
    assert found.verdict == "undecided" and found.open == ["not all weights are finite"]


def test_one_layer_is_read_as_p_and_q():
    A, B = matrix([[1, 2], [3, 4]]), matrix([[5, 6], [7, 8]])
    law = LinearRegression(2, 8).law([0])
    given = Given("sparse_ab", "identity", {"A": [A], "B": [B]}, law)
    for family, sign in (("sparse_a", -1), ("sparse_ab", 1)):
        P, Q = replace(given, family=family, matrices={"A": [A]}).single_layer("one")
        assert unit(2, 2, 3) == P
        assert matrix([[sign, 2 * sign, 0], [3 * sign, 4 * sign, 0], [0, 0, 0]]) == Q
    full = replace(given, family="full", matrices={"P": [A], "Q": [B]})
    assert full.single_layer("one") == (A, B)
    with pytest.raises(InputError, match="these have 2 layers"):
        replace(full, matrices={"P": [A], "Q": [A, B]}).single_layer("one")
    assert (distance([2 * A, B], [A, B]) ** 2).contains(fmpq(30, 30 + 174))


def of_theorem_4(layers, place=0, noise=0.0):
    point = InvariantRisk(3, 8, layers, with_b=True).minimise(generator(0, "search"), 8)[place]
    A = -torch.tensor(point.a_L)[:, None, None] * torch.linalg.inv(LAW.Sigma_RDD)[:, None]
    b = torch.tensor(point.b_L)[None, :, None, None].expand(2, -1, -1, -1)
    matrices = {"A": A, "B": b * torch.eye(3, dtype=torch.float64)} if layers > 1 else {"A": A}
    return Weights("sparse_ab", disturbed(matrices, noise), LAW)


@pytest.mark.parametrize(("layers", "place"), [(1, 0), (2, 0), (2, 1)])
def test_weights_at_any_minimum_of_theorem_4_hold_and_others_are_elsewhere(layers, place):
    near = judge(Theorem4(), of_theorem_4(layers, place, 0.003))
    assert near.verdict == "holds", near.reasons
    weights = of_theorem_4(layers, place)
    longer = replace(weights, matrices=weights.matrices | {"A": 1.3 * weights.matrices["A"]})
    for other in (of_theorem_4(layers, place, 0.5), longer):
        assert judge(Theorem4(), other).verdict == "undecided"
    with pytest.raises(InputError, match="sparse_a "):
        judge(Theorem4(), replace(weights, family="sparse_a"))
