"""Tests of the exact risk at any size: tokens, the risk of icl's attention, the limit of infinite prompts."""

import numpy as np
import pytest

import icl
from icl.theory.lu.finite import FiniteRisk, TaskMoments
from icl.theory.lu.limits import Limit


@pytest.mark.parametrize(("dim", "examples"), [(1, 1), (2, 3), (3, 40)])
def test_gaussian_tasks_without_noise_have_the_risk_of_the_same_attention_layer(dim, examples):
    Gamma_DH = np.random.default_rng(1).standard_normal((dim, dim + 1))
    P, Q = np.zeros((2, dim + 1, dim + 1))
    P[-1, -1] = 1
    Q[:, :dim] = -Gamma_DH.T * np.array([*[dim] * dim, 1])[:, None]  # read out with a minus sign
    layer = icl.exact_risk(P, Q, context=examples, covariance=(np.eye(dim) / dim).tolist())
    assert FiniteRisk(TaskMoments.new(dim, 0, "gaussian"), examples).risk(Gamma_DH) == pytest.approx(layer)


@pytest.mark.parametrize("law", ["sphere", "gaussian"])
@pytest.mark.parametrize(("dim", "examples", "rho"), [(1, 1, 0.5), (3, 2, 0.0), (4, 9, 1.3)])
def test_the_risk_is_the_mean_loss_on_tokens(law, dim, examples, rho):
    """Draw the tokens themselves, for new tasks and for three given ones."""
    rng, N = np.random.default_rng([dim, examples]), 50_000
    few_KD = 2 * rng.standard_normal((3, dim))
    w_ND = rng.standard_normal((N, dim))
    if law == "sphere":
        w_ND *= np.sqrt(dim) / np.linalg.norm(w_ND, axis=1, keepdims=True)
    Gamma_DH = rng.standard_normal((dim, dim + 1)) / dim
    for tasks, w in (
        (TaskMoments.new(dim, rho, law), w_ND),
        (TaskMoments.of(few_KD, rho), few_KD[rng.integers(3, size=N)]),
    ):
        x_NLD = rng.standard_normal((N, examples + 1, dim)) / np.sqrt(dim)
        y_NL = np.einsum("nld,nd->nl", x_NLD, w) + np.sqrt(rho) * rng.standard_normal((N, examples + 1))
        sums_ND = np.einsum("nld,nl->nd", x_NLD[:, :-1], y_NL[:, :-1])
        h_NH = np.hstack([dim * sums_ND, np.square(y_NL[:, :-1]).sum(1, keepdims=True)]) / examples
        loss_N = np.square(y_NL[:, -1] - np.einsum("nd,dh,nh->n", x_NLD[:, -1], Gamma_DH, h_NH))
        risk = FiniteRisk(tasks, examples).risk(Gamma_DH)
        assert abs(loss_N.mean() - risk) < 4.5 * loss_N.std() / N**0.5


def test_no_weights_have_less_risk_than_the_best():
    rng = np.random.default_rng(0)
    finite = FiniteRisk(TaskMoments.of(rng.standard_normal((2, 5)), 0.1), 7)
    best_DH = finite.best()
    for _ in range(5):
        step_DH = rng.standard_normal(best_DH.shape)
        up, down = (finite.risk(best_DH + sign * 1e-3 * step_DH) - finite.risk(best_DH) for sign in (1, -1))
        assert up > 0 and up == pytest.approx(down, rel=1e-6)


@pytest.mark.parametrize("kappa", [0.5, 1, 3])
def test_the_best_weights_of_many_covariates_have_the_errors_of_the_limit(kappa):
    d, alpha, rho = 500, 10, 0.1
    w_KD = np.random.default_rng(3).standard_normal((round(kappa * d), d))
    w_KD *= np.sqrt(d) / np.linalg.norm(w_KD, axis=1, keepdims=True)
    old, new = (FiniteRisk(t, alpha * d) for t in (TaskMoments.of(w_KD, rho), TaskMoments.new(d, rho)))
    limit = Limit(alpha, kappa, np.inf, rho)
    assert old.risk(old.best()) == pytest.approx(limit.idg, rel=0.01)
    assert new.risk(old.best()) == pytest.approx(limit.icl, rel=0.01)
