"""Tests of the tilted estimator: unbiased for exact risks at every depth, for the gradient, replica by
replica.
"""

from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.stats import t as student

from icl.models import Full, LinearTransformer, SparseA, SparseAB
from icl.random import generator
from icl.tasks import LinearRegression
from icl.tasks.ahn.risk_on_s import risk_on_s
from icl.tasks.integrated import degree_of_risk
from icl.tasks.tilted import INFLATIONS, inflations_for
from icl.training.estimators import make_estimator

CHUNKS, SIZE = 24, 500
# 99.9 % over the settings of this file together, of means of CHUNKS values
QUANTILE = float(student.isf(0.0005 / 60, CHUNKS - 1))
STEPS_A, STEPS_B = (0.4, 0.55, 0.7, 0.9), (0.1, 0.15, 0.2)  # a_l and b_l in whitened coordinates


def on_s(law, layers, with_b, steps_a=STEPS_A, steps_b=STEPS_B):
    inverse_R1DD = torch.linalg.inv(law.Sigma_RDD)[:, None]
    sign = -1 if with_b else 1
    matrices = {"A": sign * torch.tensor(steps_a[:layers])[:, None, None].double() * inverse_R1DD}
    if with_b and layers > 1:
        scalars = torch.tensor(steps_b[: layers - 1]).double()[:, None, None]
        matrices["B"] = (scalars * torch.eye(law.dim)).expand(len(inverse_R1DD), -1, -1, -1).contiguous()
    family = (SparseAB if with_b else SparseA)(law.dim, layers)
    family.load(matrices)
    return LinearTransformer(family)


def chunked(name, model, law, step):
    """Return risk and gradient of one chunk in a row: (chunks, numbers)."""
    estimator, rows = make_estimator(name, model, law), []
    streams = [generator(seed, "check", step) for seed in (0, 1)]
    for _ in range(CHUNKS):
        risk_R = estimator.risk(model, estimator.draw(streams, SIZE))
        grads = torch.autograd.grad(risk_R.sum(), list(model.parameters()))
        rows.append(torch.cat([risk_R.detach(), *(grad.flatten() for grad in grads)]))
    return torch.stack(rows)


def deviation(rows_CK, exact_K):
    stderr_K = rows_CK.std(0) / CHUNKS**0.5
    return float(((rows_CK.mean(0) - exact_K).abs() / stderr_K).max())


@pytest.mark.parametrize("with_b", [False, True], ids=["a", "ab"])
@pytest.mark.parametrize(("n", "layers"), [(2, 1), (2, 3), (6, 2), (6, 4), (12, 3)])
def test_unbiased_for_the_exact_risk_on_s(n, layers, with_b):
    """Give each replica a covariance of its own, contexts shorter and longer than dim."""
    law = LinearRegression(3, n, eigenvalues=[1, 0.25, 2], task_covariance="inverse").law([0, 1])
    model = on_s(law, layers, with_b)
    exact = risk_on_s(model, law)
    assert exact is not None
    risk_CR = chunked("tilted", model, law, 0)[:, :2]
    assert (risk_CR.std(0) / CHUNKS**0.5 < 0.2 * exact(model)).all(), "an error that large tests nothing"
    assert deviation(risk_CR, exact(model)) < QUANTILE


def test_the_risk_and_its_error_where_plain_batches_mislead():
    """Estimate three layers of (11) near the best point of S at n = 10: 40,000 draws come within a few
    percent."""
    law = LinearRegression(5, 10, task_covariance="inverse").law([0, 1])
    model = on_s(law, 3, True, (0.539, 1.57, 11.781), (0.297, 0.948))
    exact = risk_on_s(model, law)
    assert exact is not None
    estimator = make_estimator("tilted", model, law)
    evaluation, size = [generator(seed, "eval") for seed in (0, 1)], 40_000 // CHUNKS
    with torch.no_grad():
        chunks = (estimator.draw(evaluation, size) for _ in range(CHUNKS))
        risk_CR = torch.stack([estimator.risk(model, draw) for draw in chunks])
    assert (risk_CR.std(0) / CHUNKS**0.5 < 0.1 * exact(model)).all()
    assert deviation(risk_CR, exact(model)) < QUANTILE


def streams():
    return [generator(seed, "train") for seed in (0, 1)]


def test_shallow_models_are_drawn_for_plainly():
    law = LinearRegression(5, 20, task_covariance="inverse").law([0, 1])
    one, deep = (make_estimator("tilted", LinearTransformer(SparseAB(5, layers)), law) for layers in (1, 3))
    assert one.plain is None and deep.plain is not None
    drawn = one.draw(streams(), 50)
    assert (drawn["weight"] == 1).all()
    torch.testing.assert_close(drawn["S"], one.inner.draw(streams(), 50)["S"], rtol=1e-12, atol=1e-12)
    said, of_deep = one.reliability(drawn), deep.reliability(deep.draw(streams(), 50))
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
