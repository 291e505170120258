from functools import cache

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar

from icl.algorithms import Contexts, Steps, search_gd
from icl.algorithms.step_search import _gd, _reduce
from icl.models.batched import batch_last
from icl.models.gram import sparse_expected_risk
from icl.random import generator
from icl.tasks import LinearRegression
from icl.theory.ahn.invariant_risk import InvariantRisk

SEEDS = [0, 1]


@cache
def draw(batch, context=20, noise=0.0, white=True):
    mean = [0.5, 0.0, 0.0, -1.0, 0.0] if noise else None
    covariance = "inverse" if white else "identity"
    task = LinearRegression(5, context, task_covariance=covariance, label_noise=noise, prior_mean=mean)
    law = task.law(SEEDS)
    S = law.covariate_grams([generator(seed, "search") for seed in SEEDS], batch)
    return law, Contexts(S, law.label_root_REK, law.query_root_RED)


def reduced_risk(rules, eta):
    return torch.stack([rule.initial * _gd(rule.H_MM, eta).square().sum() for rule in rules])


def expected_risk(contexts, steps, Sigma_RDD):
    """Return the same mean through the transformer's own expected risk."""
    D = contexts.query_root_RED.shape[-1]
    P = torch.eye(D).double() if Sigma_RDD is None else torch.linalg.inv(Sigma_RDD)[:, None]
    A = -steps.eta_RL[..., None, None] * P
    S = batch_last(contexts.S_RBEE)
    return sparse_expected_risk(A, None, S, contexts.label_root_REK, contexts.query_root_RED).mean(-1)


def one_eta(context, layers, low=0.1, high=1.2):
    risk = InvariantRisk(5, context, layers)
    best = minimize_scalar(
        lambda eta: risk.value([eta] * layers), bounds=(low, high), method="bounded", options={"xatol": 1e-11}
    )
    return best.x, best.fun


@pytest.mark.parametrize("noise", [0.0, 0.3])
@pytest.mark.parametrize("white", [False, True])
@pytest.mark.parametrize("preconditioned", [False, True])
def test_the_reduced_risk_is_the_mean_risk_of_the_draw(noise, white, preconditioned):
    """Compare at any step sizes, with noise and a prior mean too, also beyond the degree of few contexts."""
    law, contexts = draw(30, 7, noise, white)
    Sigma = law.Sigma_RDD if preconditioned else None
    eta = torch.tensor([0.3, 0.9, 0.6, 0.2]).double()
    for drawn in (contexts, draw(1, 2, noise, white)[1]):
        found = reduced_risk(_reduce(drawn, Sigma, 4), eta)
        steps = Steps(eta.expand(2, -1), found)
        torch.testing.assert_close(found, expected_risk(drawn, steps, Sigma), rtol=1e-11, atol=0)


@pytest.mark.parametrize(("layers", "context"), [(1, 10), (2, 20), (4, 20)])
def test_preconditioned_steps_against_the_exact_optimum(layers, context):
    """Compare with the optimum: risk at steps found on a draw exceeds it to second order in the draw's
    error."""
    law, contexts = draw(60_000, context)
    exact = InvariantRisk(5, context, layers)
    best = exact.optimum()
    found = search_gd(contexts, layers, law.Sigma_RDD)
    for eta_L in found.eta_RL:
        np.testing.assert_allclose(eta_L, best.a_L, rtol=0.05)
        assert best.risk * (1 - 1e-12) <= exact.value(eta_L.tolist()) < 1.005 * best.risk
    eta, risk = one_eta(context, layers)
    for eta_L in search_gd(contexts, layers, law.Sigma_RDD, per_step=False).eta_RL:
        assert len(set(eta_L.tolist())) == 1
        assert risk * (1 - 1e-12) <= exact.value(eta_L.tolist()) < 1.005 * risk
        assert float(eta_L[0]) == pytest.approx(eta, rel=0.05)


def test_shared_steps_weigh_replicas_by_their_risk():
    law = LinearRegression(5, [6, 30], task_covariance="inverse").law(SEEDS)
    S = law.covariate_grams([generator(seed, "search") for seed in SEEDS], 300)
    unequal = torch.tensor([1.0, 5.0]).double()[:, None, None]
    contexts = Contexts(S, law.label_root_REK * unequal, law.query_root_RED)
    found = search_gd(contexts, 1, shared=True)
    for factor in (1 - 1e-5, 1 + 1e-5):
        moved = Steps(found.eta_RL * factor, found.risk_R)
        assert float(expected_risk(contexts, moved, None).mean()) > float(found.risk_R.mean())


@pytest.mark.parametrize("scale", [1e-4, 1e3])
def test_units_do_not_matter(scale):
    _, contexts = draw(500)
    scaled = Contexts(contexts.S_RBEE * scale, contexts.label_root_REK * 7, contexts.query_root_RED)
    plain, other = search_gd(contexts, 2), search_gd(scaled, 2)
    torch.testing.assert_close(other.eta_RL * scale, plain.eta_RL, rtol=1e-5, atol=0)


def test_as_many_steps_as_eigenvalues_leave_no_error():
    """Exhaust the Krylov space with few contexts: S = 2; then S = diag(1, 4) in both, eta = 1 and 1/4."""
    one = torch.ones(1, 1, 1).double()
    for layers in (1, 2):
        found = search_gd(Contexts(2 * one[None], one, one), layers)
        assert float((found.eta_RL - 0.5).abs().min()) < 1e-6 and float(found.risk_R) < 1e-12
    S = torch.diag(torch.tensor([1.0, 4.0])).double().expand(1, 2, 2, 2)
    eye = torch.eye(2).double()[None]
    found = search_gd(Contexts(S, eye, eye), 2)
    torch.testing.assert_close(found.eta_RL, torch.tensor([[0.25, 1.0]]).double(), rtol=1e-6, atol=0)
    assert float(found.risk_R) < 1e-12
    assert float(search_gd(Contexts(S, eye, eye), 4).risk_R) < 1e-12
