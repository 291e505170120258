import math

import numpy as np
import pytest
import torch

from icl.checks.ahn import theorem1
from icl.checks.ahn.support.linear_layer import LinearLayer
from icl.checks.ahn.theorem1 import Theorem1
from icl.checks.verdict import Weights
from icl.tasks import LinearRegression, LinearRegressionLaw
from icl.theory.closed_forms import theorem1_preconditioner
from icl.theory.quadratic import QuadraticRisk
from tests.checks.asking import elsewhere, held, refuses


def test_a_context_beyond_float64_is_undecided(no_tokens):
    finding = Theorem1(dim=2, context=10**14).measure()
    assert finding.verdict == "undecided"
    assert "rank" in finding.notes[0] and "context 200" in finding.notes[1]


@pytest.mark.parametrize("eigenvalues", [[1, 1e-5, 1e-10], [1, 1, 1e-16], [1e-30, 1e-20, 1]])
def test_the_condition_of_sigma_drops_out(eigenvalues, no_tokens):
    for seed in range(3):
        finding = held(Theorem1(dim=3, eigenvalues=eigenvalues, seed=seed))
        assert finding.bound.value < 1e-9 and finding.measured["condition"] < 1000


def test_whitened_weights_have_the_risk_and_gradient_of_the_given_ones():
    Sigma = LinearRegression(3, 4, eigenvalues=[1, 0.5, 3]).law([2]).Sigma_RDD[0]
    layer = LinearLayer(Sigma, 4)
    plain = QuadraticRisk.linear_regression(Sigma, torch.eye(3, dtype=torch.float64), 4)
    P, Q = (torch.from_numpy(np.random.default_rng(s).standard_normal((4, 4))) for s in (0, 1))
    leaves = P[None].clone().requires_grad_(), Q[None].clone().requires_grad_()
    risk = plain.value_of_layer(*leaves)
    gradient = torch.stack(torch.autograd.grad(risk, leaves)).norm()
    risk = risk.detach()
    assert layer.at(P, Q) == pytest.approx((float(risk), float(gradient)), rel=1e-12)
    assert layer.at_whitened(*layer.whiten(P, Q))[0] * layer.unit == pytest.approx(float(risk), rel=1e-12)
    assert layer.least_risk == pytest.approx(plain.convex_bound().value, rel=1e-12)


def one_token_more(right, *given):
    """Return the formula and the claim that rests on it, at context N + 1."""
    return right(*given[:-1], given[-1] + 1)


def test_tokens_reject_moments_and_claim_that_are_wrong_together(mutate):
    mutate(QuadraticRisk, "linear_regression", one_token_more)
    for name in ("theorem1_preconditioner", "isotropic_step", "theorem1_risk", "isotropic_risk"):
        mutate(theorem1, name, one_token_more)
    mutate(LinearLayer, "condition_by_norms", lambda _, layer: layer.optimum.condition)
    finding = Theorem1(dim=3, context=10).measure()
    assert finding.measured["gradient_norm"] < finding.measured["risk_at_claim"] * 1e-12
    assert finding.verdict == "fails"
    assert finding.measured["token_z"] > finding.measured["token_z_bound"]


def test_a_law_that_divides_by_another_context_fails(mutate):
    mutate(LinearRegressionLaw, "covariate_grams", lambda right, *given: right(*given) * 4 / 5)
    finding = Theorem1(dim=2, context=4).measure()
    assert finding.verdict == "fails" and finding.bound.of == "free_z"


def claim_weights(family, law, scale=1.0):
    A_RDD = torch.stack(
        [theorem1_preconditioner(S, n) for S, n in zip(law.Sigma_RDD, law.context_R, strict=True)]
    )
    if family != "full":
        sign = 1 if family == "sparse_a" else -1
        return Weights(family, {"A": scale * sign * A_RDD[:, None]}, law)
    R, D, _ = A_RDD.shape
    P = torch.from_numpy(np.random.default_rng(0).standard_normal((R, 1, D + 1, D + 1)))
    Q = torch.zeros(R, 1, D + 1, D + 1, dtype=torch.float64)
    P[:, :, -1] = 0
    P[:, :, -1, -1] = -3
    Q[:, 0, :-1, :-1] = scale * A_RDD / 3
    Q[..., -1] = 7  # multiplies the query's label, which is 0
    return Weights(family, {"P": P, "Q": Q}, law)


@pytest.mark.parametrize("family", ["full", "sparse_a", "sparse_ab"])
def test_judges_weights(family):
    law = LinearRegression(3, 8, eigenvalues=[1, 0.5, 2]).law([0, 4])
    finding = held(Theorem1(), claim_weights(family, law))
    assert finding.measured["distance"] < 1e-12
    assert len(finding.measured["distance_by_seed"]) == 2
    assert finding.measured["gradient_norm"] < 1e-10
    assert len(finding.measured["risk_excess_by_seed"]) == 2
    assert Theorem1().judge(claim_weights(family, law, 1.03)).verdict == "holds"
    elsewhere(Theorem1().judge(claim_weights(family, law, 1.06)))
    assert Theorem1().judge(claim_weights(family, law, float("nan"))).verdict == "undecided"


def test_judges_the_worst_seed():
    law = LinearRegression(3, 8, eigenvalues=[1, 0.5, 2]).law([0, 4])
    weights = claim_weights("sparse_a", law)
    weights.matrices["A"][0] *= 1.5
    finding = Theorem1().judge(weights)
    elsewhere(finding)
    assert "replica 0" in finding.notes[0]
    assert finding.measured["distance_by_seed"] == pytest.approx([0.5, 0], abs=1e-12)
    assert finding.measured["distance"] == pytest.approx(0.5)
    weights.matrices["A"][0] /= 1.5
    weights.matrices["A"][1] *= float("nan")  # which the first seed's number must not hide
    finding = Theorem1().judge(weights)
    assert finding.verdict == "undecided" and math.isnan(finding.measured["risk_excess"])


def test_judge_refuses_what_the_theorem_does_not_speak_of():
    law = LinearRegression(2, 8).law([0])
    A = torch.ones(1, 1, 2, 2, dtype=torch.float64)
    inverse = {"eigenvalues": [1, 2], "task_covariance": "inverse"}
    others = (inverse, {"label_noise": 0.1}, {"read_out": 1})
    given = (
        Weights("multi_head", {"P": A, "Q": A}, law),
        Weights("sparse_a", {"A": A}, law, activation="relu"),
        Weights("sparse_a", {"A": A.expand(1, 3, 2, 2)}, law),
        Weights("sparse_a", {}, law),
        *(Weights("sparse_a", {"A": A}, LinearRegression(2, 8, **other).law([0])) for other in others),
    )
    refuses(Theorem1(), *((weights, r"^check\.weights: ") for weights in given))
