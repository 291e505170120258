from dataclasses import replace
from fractions import Fraction

import pytest
import torch

from icl.checks.ahn.support import trace_words
from icl.checks.ahn.theorem3 import Theorem3
from icl.checks.verdict import Weights
from icl.random import generator
from icl.tasks import LinearRegression
from icl.theory.ahn.invariant_risk import InvariantRisk
from tests.checks.asking import elsewhere, held, refuses
from tests.theory.ahn.rationals import exact_value

pytestmark = pytest.mark.usefixtures("fewer_prompts")

SMALL = {"samples": 1000}
WRONG_TASKS = torch.tensor([1, 1, 2.0]).double()


@pytest.mark.parametrize("layers", [1, 3, 4])
def test_the_scalars_are_critical_in_rational_arithmetic(no_tokens, layers):
    finding = Theorem3(dim=3, context=7, layers=layers, **SMALL).measure()
    risk = InvariantRisk(3, 7, layers)
    a = [Fraction(x) for x in finding.measured["scalars"]]
    assert float(exact_value(risk, a)) == pytest.approx(finding.measured["risk"], rel=1e-13)
    step = Fraction(1, 2**20)
    for layer in range(layers):
        up, down = (exact_value(risk, [x + s * (i == layer) for i, x in enumerate(a)]) for s in (step, -step))
        assert abs(float((up - down) / (2 * step))) < 1e-13 * float(exact_value(risk, [-x for x in a]))


def weights_near_s(layers, noise=0.0, seeds=(0, 1)):
    law = LinearRegression(3, 8, eigenvalues=[2, 1, 0.25], task_covariance="inverse").law(list(seeds))
    a_L = torch.tensor(InvariantRisk(3, 8, layers).optimum().a_L).flip(0)
    A = a_L[:, None, None] * torch.linalg.inv(law.Sigma_RDD)[:, None]
    rng = generator(0, "control")
    A = A + noise * torch.tensor(rng.standard_normal(A.shape))
    return Weights("sparse_a", {"A": A.float()}, law)


@pytest.mark.parametrize("layers", [1, 3, 4])
def test_judges_weights_by_distance_and_risk(layers):
    check = Theorem3(samples=1000)
    near = held(check, weights_near_s(layers, 0.003))
    assert (near.bound.of, near.bound.value) == ("distance", 0.05)
    assert len(near.measured["risk_by_seed"]) == 2
    elsewhere(check.judge(weights_near_s(layers, 0.5)))
    scaled = weights_near_s(layers)
    scaled = replace(scaled, matrices={"A": 1.3 * scaled.matrices["A"]})
    far = check.judge(scaled)
    elsewhere(far)
    assert (far.bound.of, far.bound.value) == ("risk_excess", 0.02)
    assert far.measured["distance"] < 0.05 and far.measured["risk_excess"] > 0.02


def test_the_sampled_risk_and_gradient_agree_with_words(monkeypatch):
    check = Theorem3(samples=40000)
    weights = weights_near_s(2, 0.02, seeds=(0,))
    exact = check.judge(weights).measured
    monkeypatch.setattr(trace_words, "WORDS_LAYERS", 0)
    sampled = check.judge(weights).measured
    assert sampled["risk_excess_error_by_seed"][0] > 0
    assert abs(sampled["risk_excess"] - exact["risk_excess"]) < sampled["risk_excess_error_by_seed"][0]
    error = sampled["gradient_norm_stderr"]
    assert 0 < error < 0.1 * exact["gradient_norm"]
    assert abs(sampled["gradient_norm"] - exact["gradient_norm"]) < 4 * error


def test_weights_the_theorem_does_not_speak_of_are_refused():
    weights = weights_near_s(2)
    check = Theorem3(**SMALL)
    other = LinearRegression(3, 8, eigenvalues=[2, 1, 0.25]).law([0, 1])
    refuses(
        check,
        (replace(weights, family="sparse_ab"), "sparse_ab"),
        (replace(weights, activation="relu"), "relu"),
        (replace(weights, law=other), "Sigma"),
        (replace(weights, law=replace(weights.law, read_out=1)), "read_out"),
    )
