"""The rule over tasks has the moments of Gaussian tasks, and the risk by it is that by moments."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from icl.checks.ahn.rate import Rate
from icl.checks.ahn.trace_term import TraceTerm
from icl.checks.settings import law_of
from icl.checks.task_rule import _rule, risk_by_tasks
from icl.theory.quadratic import QuadraticRisk


@pytest.mark.parametrize("dim", [1, 2, 4, 9])
def test_the_rule_has_the_moments_of_a_gaussian(dim):
    points, weights = (part.numpy() for part in _rule(dim))
    matrix = np.random.default_rng(0).standard_normal((dim, dim))
    square = np.einsum("vi,ij,vj->v", points, matrix, points)
    second = matrix + matrix.T
    assert weights.sum() == pytest.approx(1) and np.allclose(weights @ points, 0)
    assert np.allclose((points.T * weights) @ points, np.eye(dim))
    # E (w' M w)^2 = tr(M)^2 + tr(M (M + M'))
    assert weights @ square**2 == pytest.approx(np.trace(matrix) ** 2 + np.trace(matrix @ second))
    assert weights @ (square * points[:, 0]) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("dim, context, guess", [(1, 3, 0.0), (2, 1, 0.7), (5, 20, 0.0), (12, 4, -2.0)])
def test_the_risk_is_that_of_the_moments_of_tasks(dim, context, guess):
    draw = torch.Generator().manual_seed(0)
    P, Q = torch.randn(2, 3, dim + 1, dim + 1, dtype=torch.float64, generator=draw)
    mean, v = torch.randn(2, 1, dim, dtype=torch.float64, generator=draw) * (guess != 0)
    law = law_of(dim, context, 0, eigenvalues=list(np.linspace(0.1, 9, dim)), task_covariance="inverse")
    law = replace(law, mean_RD=mean, guess_RD=v, guess_bias=guess)
    of_law = {"prior_mean": mean[0], "guess_vector": v[0], "guess_bias": guess, "target_sign": -1}
    risk = QuadraticRisk.linear_regression(law.Sigma_RDD[0], law.Sigma_w_RDD[0], context, **of_law)
    assert risk_by_tasks(law, P, Q) == pytest.approx(float(risk.value_of_layer(P, Q)), rel=1e-12)
    assert risk_by_tasks(replace(law, context_R=(context + 1,)), P, Q) != pytest.approx(
        float(risk.value_of_layer(P, Q)), rel=1e-3
    )


@pytest.mark.parametrize("check", [Rate, TraceTerm])
def test_a_second_route_reaches_the_largest_dimension(check):
    finding = check(dim=64).measure()
    assert finding.verdict in ("holds", "fails") and finding.control.rejected
