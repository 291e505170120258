"""Tests of the tilted estimator where the tail matters. At other settings: tests/tasks/test_every_law.py."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.stats import t as student

from icl.models import Full, LinearTransformer, SparseA, SparseAB
from icl.tasks import LinearRegression
from icl.tasks.ahn.risk_on_s import risk_on_s
from icl.tasks.integrated import degree_of_risk
from icl.tasks.tilted import INFLATIONS, inflations_for
from icl.training.estimators import make_estimator
from tests.streams import streams

CHUNKS = 24
QUANTILE = float(student.isf(0.0005, CHUNKS - 1))  # 99.9 %, of a mean of CHUNKS values


def on_s(law, a_L, beta_L):
    """Return layers of eq. (11) on the set S: a_l Sigma^{-1} and beta_l I."""
    inverse_R1DD = torch.linalg.inv(law.Sigma_RDD)[:, None]
    a_L11, beta_L11 = (torch.tensor(steps)[:, None, None].double() for steps in (a_L, beta_L))
    B_RLDD = (beta_L11 * torch.eye(law.dim)).expand(len(inverse_R1DD), -1, -1, -1).contiguous()
    family = SparseAB(law.dim, len(a_L))
    family.load({"A": -a_L11 * inverse_R1DD, "B": B_RLDD})
    return LinearTransformer(family)


def test_the_risk_and_its_error_where_plain_batches_mislead():
    """Estimate three layers of (11) near the best point of S at n = 10: 40,000 draws come within a few
    percent."""
    law = LinearRegression(5, 10, task_covariance="inverse").law([0, 1])
    model = on_s(law, (0.539, 1.57, 11.781), (0.297, 0.948))
    exact = risk_on_s(model, law)
    assert exact is not None
    estimator = make_estimator("tilted", model, law)
    evaluation, size = streams(role="eval"), 40_000 // CHUNKS
    with torch.no_grad():
        chunks = (estimator.draw(evaluation, size) for _ in range(CHUNKS))
        risk_CR = torch.stack([estimator.risk(model, draw) for draw in chunks])
    error_R = risk_CR.std(0) / CHUNKS**0.5
    assert (error_R < 0.1 * exact(model)).all()
    assert ((risk_CR.mean(0) - exact(model)).abs() < QUANTILE * error_R).all()


def test_shallow_models_are_drawn_for_plainly():
    law = LinearRegression(5, 20, task_covariance="inverse").law([0, 1])
    one, deep = (make_estimator("tilted", LinearTransformer(SparseAB(5, layers)), law) for layers in (1, 3))
    assert one.plain is None and deep.plain is not None
    drawn = one.draw(streams(role="train"), 50)
    assert (drawn["weight"] == 1).all()
    torch.testing.assert_close(
        drawn["S"], one.inner.draw(streams(role="train"), 50)["S"], rtol=1e-12, atol=1e-12
    )
    said, of_deep = one.reliability(drawn), deep.reliability(deep.draw(streams(role="train"), 50))
    assert torch.equal(said["effective_size"], torch.tensor([50.0, 50.0]).double())
    assert (of_deep["effective_size"] < 50).all() and (of_deep["largest_weight"] > 1).all()
    assert set(said) == set(one.reliability_names)


def test_the_ladder_of_inflations():
    assert np.allclose(inflations_for(26, 10, 5), INFLATIONS, rtol=0.05)
    for degree in (2, 8, 26, 80):
        for n, dim in ((1, 1), (2, 5), (5, 5), (20, 5), (200, 5)):
            ladder = inflations_for(degree, n, dim)
            assert ladder[0] == 1 and all(b > a for a, b in pairwise(ladder))
            assert len(ladder) <= len(inflations_for(degree + 10, n, dim))
    assert inflations_for(2, 20, 5) == inflations_for(80, 5000, 5) == (1.0,)


@pytest.mark.parametrize("family", [SparseA(2, 3), SparseAB(2, 1), SparseAB(2, 3), Full(2, 2)])
def test_degrees_add_up_layer_by_layer(family):
    """Add degrees of each layer's step, s times its covariates squared; B moves these by as much."""
    of_covariates = of_labels = 0
    for _ in range(family.layers):
        step = 1 + 2 * of_covariates
        of_labels += step
        of_covariates += step if family.with_b or not family.sparse else 0
    assert degree_of_risk(LinearTransformer(family)) == 2 * of_labels
