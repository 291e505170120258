"""Tests of reduced linear attention as a model that is trained: where training ends, and its risks."""

import pytest
import torch

from icl.callbacks import TaskRisks
from icl.models import ReducedLSA
from icl.models.lu.finite import FiniteRisk, TaskMoments
from icl.models.lu.pretraining import Prompts, by_steps, few_prompts, many_prompts
from icl.random import generator
from icl.tasks.estimators import SampledGram
from tests.plans import train_one

DIM, CONTEXT, NOISE, SEEDS = 3, 12, 0.1, (0, 1)
BFGS = {"lr": 1.0, "line_search_fn": "strong_wolfe", "tolerance_grad": 1e-12, "tolerance_change": 1e-15}
TASK = {"dim": DIM, "context": CONTEXT, "label_noise": NOISE, "tasks": 4, "task_law": "sphere"}
TASK |= {"covariance": [[(i == j) / DIM for j in range(DIM)] for i in range(DIM)]}
TASK |= {"task_covariance": "identity"}


def decay(ridge):
    """Return gradient descent whose weight decay is the ridge: it adds decay |Gamma|^2 / 2 to the mean loss,
    the paper lambda |Gamma|^2 / d."""
    return torch.optim.SGD, {"lr": 0.2, "momentum": 0.7, "weight_decay": 2 * ridge / DIM}


@pytest.mark.parametrize(
    ("optimizer", "ridge", "batch", "steps"),
    [(decay(0.5), 0.5, 7, 150), (decay(0.5), 0.5, 60, 150), ((torch.optim.LBFGS, BFGS), 0.0, 60, 10)],
    ids=["few prompts", "many prompts", "no ridge"],
)
def test_training_on_a_fixed_batch_ends_at_its_ridge_regression(make_plan, optimizer, ridge, batch, steps):
    """Compare with the three solutions of lu's ridge regression, and its risks with formulas at finite d."""
    train = {"steps": steps, "steps_per_batch": steps, "batch": batch, "clip": None, "log_every": steps}
    plan = make_plan(
        SEEDS, TASK, lambda dim: ReducedLSA(dim, 1, 0.1), optimizer=optimizer,
        train=train | {"estimator": "sampled"}, callbacks={"more": [TaskRisks(0)]},
    )  # fmt: skip
    trained = train_one(plan).record
    draw = SampledGram(plan.law, plan.model).draw([generator(seed, "train", 0) for seed in SEEDS], batch)
    for r in range(len(SEEDS)):
        gram_PPB, query_PB = draw["gram"][r].numpy(), draw["query"][r].numpy()
        h_BH = gram_PPB[-1].T * [*[DIM] * DIM, 1]
        prompts = Prompts(query_PB[:DIM].T, h_BH, draw["target"][r].numpy())
        Gamma_DH = trained.weights["Gamma"][r, 0]
        for solution in (few_prompts, many_prompts, by_steps)[0 if ridge else 1 :]:
            shift = batch * ridge / DIM
            for shifts in ([shift], [shift + 1, shift]):
                ridge_DH = solution(iter([prompts]), DIM, shifts)[-1]
                assert Gamma_DH == pytest.approx(ridge_DH, rel=1e-6, abs=1e-7)
        tasks = TaskMoments.of(plan.law.tasks_RKD[r].numpy(), NOISE), TaskMoments.new(DIM, NOISE)
        for name, moments in zip(("risk_old", "risk_new"), tasks, strict=True):
            exact = FiniteRisk(moments, CONTEXT).risk(Gamma_DH)
            found = trained.run["metrics"][name]["by_seed"][str(SEEDS[r])]
            assert found == pytest.approx(exact - NOISE, rel=1e-10)  # of the label without its noise
