"""Tests of laws with finitely many tasks, or with tasks on a sphere. Their risks and draws are compared with
tokens in tests/tasks/test_every_law.py."""

import numpy as np
import pytest
import torch

from icl.algorithms import DiscreteMMSE
from icl.errors import InputError
from icl.models import Full, LinearTransformer, SparseA, SparseAB
from icl.random import generator
from icl.tasks import LinearRegression
from icl.tasks.ahn.risk_on_s import risk_on_s
from icl.tasks.linear_regression import linear_regression
from tests.streams import streams

SEEDS, SIGMAS = (0, 3), 5.0
COVARIANCE = [[2.0, 0.5], [0.5, 1.0]]


def number_of(task_D, tasks_KD):
    (found,) = np.flatnonzero((tasks_KD == task_D).all(1))
    return int(found)


@pytest.mark.parametrize(("tasks", "batch"), [(1, 3), (4, 12), (4, 14), (9, 5)])
def test_a_balanced_draw_has_every_task_as_often(tasks, batch):
    law = LinearRegression(2, 3, tasks=tasks, task_draw="balanced").law(SEEDS)
    _, w_RBD = law.gram_tasks(streams(SEEDS), batch)
    for w_BD, tasks_KD in zip(w_RBD.numpy(), law.tasks_RKD.numpy(), strict=True):
        numbers = [number_of(w_D, tasks_KD) for w_D in w_BD]
        counts = np.bincount(numbers, minlength=tasks)
        assert set(counts) <= {batch // tasks, -(-batch // tasks)}
        assert tasks == 1 or numbers != sorted(numbers), "the order must not follow the tasks"


def test_drawn_tasks_are_as_likely_and_fewer_are_the_first_of_more():
    few, many = (LinearRegression(2, 3, tasks=k).law(SEEDS) for k in (4, 50))
    assert torch.equal(many.tasks_RKD[:, :4], few.tasks_RKD)
    assert not torch.equal(few.tasks_RKD[0], few.tasks_RKD[1])
    _, w_RBD = few.gram_tasks(streams(SEEDS), 4000)
    counts = np.bincount([number_of(w, few.tasks_RKD[0].numpy()) for w in w_RBD[0].numpy()], minlength=4)
    assert ((counts - 1000) ** 2 / 1000).sum() < 30  # chi squared of 3 degrees, beyond 1e-6
    assert len(set(counts)) > 1, "drawn, not balanced"


@pytest.mark.parametrize("tasks", [None, 400])
def test_tasks_on_a_sphere_have_its_radius_and_the_covariance(tasks):
    task = LinearRegression(
        2, 3, tasks=tasks, task_law="sphere", task_covariance=COVARIANCE, prior_mean=[1, -2]
    )
    law = task.law(SEEDS)
    w_RBD = law.tasks_RKD if tasks else law.gram_tasks(streams(SEEDS), 4000)[1]
    s_RBD = torch.linalg.solve(law.task_root_RDD, (w_RBD - law.mean_RD[:, None]).mT).mT
    assert torch.allclose(s_RBD.square().sum(-1), torch.tensor(2.0).double(), rtol=1e-12)
    products_RBX = (s_RBD[..., :, None] * s_RBD[..., None, :]).flatten(2)
    off = (products_RBX.mean(1) - torch.eye(2).double().flatten()).abs()
    assert (off < SIGMAS * products_RBX.std(1) / products_RBX.shape[1] ** 0.5 + 1e-12).all()
    one = LinearRegression(1, 3, task_law="sphere").law([0])
    ends = one.gram_tasks([generator(0, "check")], 50)[1].flatten()
    assert torch.allclose(ends.abs(), torch.ones(50).double(), rtol=1e-14)
    assert set(ends.sign().tolist()) == {1, -1}


def test_deep_sparse_stacks_have_the_risk_of_the_second_moment():
    """Compare with a Gaussian law of that covariance; fewer tasks than covariates among them."""
    for tasks in (1, 2, 7):
        law = LinearRegression(3, 4, tasks=tasks, task_law="sphere").law(SEEDS)
        family = SparseA(3, 3, 0.3)
        family.initialise(SEEDS)
        model = LinearTransformer(family)
        second_RDD = law.tasks_RKD.mT @ law.tasks_RKD / tasks
        for r, second in enumerate(second_RDD.numpy() + 1e-13 * np.eye(3)):
            same = LinearRegression(3, 4, task_covariance=second.tolist()).law(SEEDS)
            assert torch.isclose(*(of.exact_risk(model)(model)[r] for of in (law, same)), rtol=1e-9)
        new = law.new_tasks.exact_risk(model)(model)
        plain = LinearRegression(3, 4).law(SEEDS).exact_risk(model)(model)
        assert torch.allclose(new, plain, rtol=1e-12), "of new tasks only the second moment counts"


def test_what_has_no_exact_form_says_so():
    law = LinearRegression(3, 4, tasks=5).law(SEEDS)
    for family in (SparseAB(3, 2), Full(3, 2)):
        assert law.exact_risk(LinearTransformer(family)) is None
    noisy = LinearRegression(3, 4, tasks=5, label_noise=0.1).law([0])
    assert noisy.exact_risk(LinearTransformer(SparseA(3, 2))) is None
    assert risk_on_s(LinearTransformer(SparseA(3, 2)), law) is None
    for other in (law, LinearRegression(3, 4, task_law="sphere").law([0])):
        with pytest.raises(InputError, match=r"Theorem 1 takes Gaussian tasks, task\.tasks=null"):
            linear_regression(other, "Theorem 1")
    assert LinearRegression(3, 4, task_law="sphere").law([0]).new_tasks is None
    assert LinearRegression(3, 4).law([0]).new_tasks is None


def test_dmmse_in_pieces_and_what_it_refuses(monkeypatch):
    law = LinearRegression(3, 8, tasks=6, label_noise=0.5).law(SEEDS)
    prompt, dmmse = law.gram_prompts(streams(SEEDS), 50), DiscreteMMSE(law.tasks_RKD, 0.5, 8)
    whole = dmmse.predict(prompt)
    monkeypatch.setattr("icl.algorithms.discrete_mmse.PIECE", 40)
    torch.testing.assert_close(dmmse.predict(prompt), whole, rtol=1e-12, atol=1e-12)
    for make, message in (
        (lambda: DiscreteMMSE(law.tasks_RKD[0], 0.5, 8), r"must have \(R, K, D\)"),
        (lambda: DiscreteMMSE(law.tasks_RKD, -0.5, 8), "label_noise=-0.5"),
        (lambda: DiscreteMMSE(law.tasks_RKD[..., :2], 0.5, 8).predict(prompt), "have 2 entries, prompts 3"),
    ):
        with pytest.raises(InputError, match=message):
            make()
