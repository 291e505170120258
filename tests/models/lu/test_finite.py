"""Tests of the exact risk at any size: the mean over tokens, the limit of infinite prompts."""

import numpy as np
import pytest

from icl.models.lu.finite import FiniteRisk, TaskMoments
from icl.theory.lu.finite import risk_of_tokens
from icl.theory.lu.limits import plotted
from icl.theory.rationals import matrix, rational


@pytest.mark.parametrize("law", ["sphere", "gaussian", None])
@pytest.mark.parametrize(("dim", "examples", "rho"), [(1, 1, 0.5), (3, 2, 0.0), (6, 9, 1.3)])
def test_the_risk_is_the_exact_mean_over_tokens(law, dim, examples, rho):
    rng = np.random.default_rng([dim, examples])
    w_KD, Gamma_DH = 2 * rng.standard_normal((3, dim)), rng.standard_normal((dim, dim + 1)) / dim
    moments = TaskMoments.new(dim, rho, law) if law else TaskMoments.of(w_KD, rho)
    tasks = law or [[rational(x) for x in w] for w in w_KD.tolist()]
    exact = risk_of_tokens(matrix(Gamma_DH.tolist()), tasks, examples, rational(rho))
    assert FiniteRisk(moments, examples).risk(Gamma_DH) == pytest.approx(
        int(exact.p) / int(exact.q), rel=1e-12
    )


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
    both = new.risk(old.best()), old.risk(old.best())
    assert both == pytest.approx(plotted(alpha, kappa, np.inf, rho), rel=0.01)
