"""Tests of logistic regression in context: the law's points, and what its targets may depend on."""

import numpy as np
import pytest
import scipy.optimize
import torch

from icl.models import Encoder
from icl.tasks import LogisticRegression
from icl.tasks.logistic_loss import LogisticLoss
from icl.tasks.logistic_regression import TOLERANCE, SampledParameters
from tests.streams import streams

SEEDS = [3, 0]


@pytest.fixture(scope="module")
def law():
    return LogisticRegression(dim=3, context=9, mu=0.05).law(SEEDS)


def test_points_are_scaled_and_separable(law):
    a_RBMD, y_RBM = law.points(streams(SEEDS, "eval"), 50)
    assert a_RBMD.shape == (2, 50, 10, 3) and set(y_RBM.unique().tolist()) == {-1.0, 1.0}
    assert torch.allclose(a_RBMD.norm(dim=-1).amax(-1), torch.ones(2, 50).double(), rtol=1e-12)
    # labels sign(<a, w>): some w has them all on its side
    for b in range(5):
        signed = (a_RBMD * y_RBM[..., None])[0, b].numpy()
        found = scipy.optimize.linprog(np.zeros(3), -signed, -np.ones(10), bounds=(None, None))
        assert found.status == 0


def test_targets_are_the_minimum_of_the_labelled_points_alone(law):
    prompt, x_RBD = law.prompts_and_targets(streams(SEEDS, "eval"), 20)
    a_RBND, y_RBN = prompt.context_RBNP[..., :-1], prompt.context_RBNP[..., -1]
    loss = LogisticLoss(a_RBND.flatten(0, 1), y_RBN.flatten(0, 1), 0.05)
    assert float(loss.gradient(x_RBD.flatten(0, 1)).norm(dim=-1).max()) <= TOLERANCE
    assert torch.equal(prompt.target_RB, (x_RBD * prompt.query_RBP[..., :-1]).sum(-1))
    assert not prompt.query_RBP[..., -1].any()  # the query's label is not shown
    # nor does the target know it: with the other label it is the same, were it the last point it is not
    a_RBMD, y_RBM = law.points(streams(SEEDS, "eval"), 20)
    with_query = law.targets(a_RBMD, y_RBM)
    assert float((with_query - x_RBD).norm(dim=-1).min()) > 1e-3


def test_a_model_that_reads_a_parameter_is_trained_on_it(law):
    model = Encoder(3, layers=1, width=4, heads=2, hidden=0, reads="parameter")
    model.parametrization.initialise(SEEDS)
    (make,) = law.estimators(model).values()
    estimator = make()
    assert isinstance(estimator, SampledParameters)
    draw = estimator.draw(streams(SEEDS, "eval"), 6)
    prompt, x_RBD = law.prompts_and_targets(streams(SEEDS, "eval"), 6)
    expected_R = (model.read(prompt) - x_RBD).square().mean((1, 2))
    assert torch.allclose(estimator.risk(model, draw), expected_R, rtol=1e-13)
    with torch.no_grad():
        model.parametrization.read_out.zero_()
    assert torch.allclose(estimator.risk(model, draw), x_RBD.square().mean((1, 2)), rtol=1e-13)
