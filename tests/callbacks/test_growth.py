"""Tests of stacks that grow: which layers are zero, what a new one begins with, which start goes on."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from icl.callbacks import Checkpoints, Growth
from icl.errors import InputError
from icl.models import LSA, LinearTransformer, SparseAB
from icl.tasks import ConditionedRegression
from icl.training.plan import TrainingPlan
from tests.plans import MakePlan, assert_identical, stopped_at, train_one

SEEDS = (0, 1, 5, 6)
TRAIN = {"steps": 12, "batch": 8, "steps_per_batch": 2, "estimator": "sampled", "log_every": 4, "clip": 1.0}


def planned(make: MakePlan, growth: Growth, name: str = "run", kernel: str = "eager") -> TrainingPlan:
    plan = make(
        seeds=SEEDS, train=TRAIN, trainer={"kernel": kernel}, optimizer=(torch.optim.Adam, {"lr": 0.05}),
        name=name,
    )  # fmt: skip
    law = ConditionedRegression(2, 6, largest=[1.0, 1.0]).law(SEEDS)
    model = LinearTransformer(LSA(2, 3, 1, init_std=0.3))
    return replace(plan, law=law, model=model, callbacks=(Checkpoints(0.0), growth))


@pytest.mark.parametrize("kernel", ["eager", "auto"])
def test_depth_by_depth(make_plan: MakePlan, kernel: str) -> None:
    """Train two layers for six steps, then all three, of which the third begins as its seeds say."""
    growth = Growth(every=6, first=2, starts=2)
    weights = train_one(planned(make_plan, growth, kernel=kernel)).record.weights
    family = LSA(2, 3, 1, init_std=0.3)
    family.initialise(SEEDS)
    first = {name: M.detach().numpy() for name, M in family.matrices().items()}
    steps = weights["history_steps"].tolist()
    assert growth.kept_steps(12) == [6, 12] and {6, 12} <= set(steps)
    for name in "PQ":
        by_step = dict(zip(steps, weights[f"{name}_history"].swapaxes(0, 1), strict=True))
        assert np.array_equal(by_step[0][:, :2], first[name][:, :2])
        assert all(not by_step[step][:, 2].any() for step in steps if step < 6)
        assert np.array_equal(by_step[6][:, 2], first[name][:, 2])
        moved = abs(by_step[7] - by_step[6])[:, 0, ..., :2, :2]
        assert np.allclose(moved, 0.05, rtol=1e-3)  # the rate, as in the first step of a new Adam
        for end, trained in ((6, 2), (12, 3)):  # each pair goes on from one start
            assert np.array_equal(by_step[end][::2, :trained], by_step[end][1::2, :trained])
        assert not np.array_equal(by_step[6][0, :2], by_step[6][2, :2])


def test_the_better_start_goes_on(make_plan: MakePlan, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare with a run without starts, which differs by what is copied alone; a risk that falls with
    the replica keeps the second of each pair."""
    apart = train_one(planned(make_plan, Growth(every=6, first=2), "apart")).record.weights
    at = apart["history_steps"].tolist().index(5)
    for second in (False, True):
        order = torch.tensor([1.0, 0.0, 1.0, 0.0] if second else [0.0, 1.0, 0.0, 1.0])
        monkeypatch.setattr("icl.training.module.EnsembleModule.risk", lambda self, draw, order=order: order)
        kept = train_one(planned(make_plan, Growth(every=6, first=2, starts=2), f"{second}")).record.weights
        assert np.array_equal(kept["P_history"][:, at], apart["P_history"][:, at])
        six = kept["history_steps"].tolist().index(6)
        of_apart = apart["P_history"][:, apart["history_steps"].tolist().index(6), :2]
        expected = of_apart[[1, 1, 3, 3] if second else [0, 0, 2, 2]]
        assert np.array_equal(kept["P_history"][:, six, :2], expected)


@pytest.mark.parametrize("step", [6, 9])
def test_an_interrupted_run_continues(make_plan: MakePlan, step: int) -> None:
    whole = train_one(planned(make_plan, Growth(every=6, first=2, starts=2), "whole")).record
    plan = planned(make_plan, Growth(every=6, first=2, starts=2), "stopped")
    with stopped_at(step):
        train_one(plan)
    assert_identical(train_one(plan).record, whole)


def test_null_changes_nothing(make_plan: MakePlan) -> None:
    plan = planned(make_plan, Growth(every=None), "null")
    plain = replace(plan, callbacks=(Checkpoints(0.0),), fingerprint="0" * 12)
    assert_identical(train_one(plan).record, train_one(plain).record)


def test_wrong_input(make_plan: MakePlan) -> None:
    plan: Any = planned(make_plan, Growth())
    for growth, words in (
        (Growth(every=6, first=2, starts=3), r"growth\.starts=3: must divide the 4 seeds"),
        (Growth(every=None, starts=2), r"growth\.starts=2: needs callbacks\.growth\.every"),
        (Growth(every=6, first=4), r"growth\.first=4: must be at most model\.layers=3"),
        (Growth(every=6), r"train\.steps=12: must be callbacks\.growth\.every=6 for each of 3 depths, 18"),
        (Growth(every=3, first=3), r"train\.steps=12: must be .* 1 depths, 3"),
    ):
        with pytest.raises(InputError, match=words):
            growth.validate_run(plan, 4)
    odd = replace(plan.train, steps=9)
    with pytest.raises(InputError, match=r"every=3: must be a multiple of train\.steps_per_batch=2"):
        Growth(every=3).validate_run(replace(plan, train=odd), 4)
    with pytest.raises(InputError, match="layers all have the same matrices"):
        Growth(every=4).validate_run(replace(plan, model=LinearTransformer(SparseAB(2, 3))), 4)
    with pytest.raises(InputError, match=r"Growth\.every=0"):
        Growth(every=0)
