"""Tests of the prompts that a curriculum draws at a step, through Lightning; and of laws without easier
ones.
"""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from icl.callbacks import Curriculum
from icl.errors import InputError
from icl.models import LSA, LinearTransformer
from icl.random import generator
from icl.tasks import ConditionedRegression, ConditionedRegressionLaw, LinearRegression
from icl.training.plan import TrainingPlan
from tests.plans import MakePlan, train_one


def law() -> ConditionedRegressionLaw:
    return ConditionedRegression(4, 12, largest=[1.0, 1.0]).law([0, 1])


def test_stages() -> None:
    published = Curriculum()
    stages = [published.stage_law(step, ConditionedRegression().law([0])) for step in (0, 4999, 5000, 39_999)]
    assert [(stage.active, *stage.context_R) for stage in stages] == [(2, 10), (2, 10), (3, 15), (9, 45)]
    last = published.stage_law(40_000, ConditionedRegression().law([0]))
    assert last == ConditionedRegression().law([0])
    assert Curriculum(every=None).stage_law(0, last) is last


def planned(make: MakePlan, *callbacks: Curriculum) -> TrainingPlan:
    plan = make(
        train={"steps": 6, "batch": 5, "steps_per_batch": 1, "estimator": "sampled", "log_every": 1},
        optimizer=(torch.optim.SGD, {"lr": 1e-6}),
        name=f"{len(callbacks)}",
    )
    model = LinearTransformer(LSA(4, 1, 1, mask=True, init_std=0.0))
    return replace(plan, law=law(), model=model, callbacks=callbacks)


def losses(plan: TrainingPlan) -> list[float]:
    record = train_one(plan).record
    return [
        value for value, seed in zip(record.metrics["loss"], record.metrics["seed"], strict=True) if seed == 0
    ]


def test_it_draws_from_the_steps_law(make_plan: MakePlan) -> None:
    """Predict zero, which loses |w|^2's share: exactly that of the stage's own prompts."""
    curriculum = Curriculum(every=2, dims=1, dims_by=1, points=3, points_by=1)
    followed = losses(planned(make_plan, curriculum))
    plain = losses(planned(make_plan))
    for step in range(6):
        for loss, of in ((followed, curriculum.stage_law(step, law())), (plain, law())):
            prompt = of.gram_prompts([generator(seed, "train", step) for seed in (0, 1)], 5)
            assert loss[step] == pytest.approx(float(prompt.target_RB[0].square().mean()) / 4, rel=1e-4)
    assert followed[0] != plain[0] and len(followed) == 7


def test_wrong_input() -> None:
    with pytest.raises(InputError, match="LinearRegressionLaw has no easier prompts"):
        Curriculum().validate_run(SimpleNamespace(law=LinearRegression().law([0])), 1)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"Curriculum\.every=0"):
        Curriculum(every=0)
