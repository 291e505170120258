"""Tests that an encoder trains, is stopped, goes on and is restored as any other model."""

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch

from icl.errors import InputError
from icl.figures.heatmaps import panels_of
from icl.models import Encoder
from icl.training.load import restored
from icl.training.plan import TrainingPlan
from icl.training.settings import TrainerSettings
from tests.plans import stopped_at, train_one

TASK = {"_target_": "icl.tasks.LinearRegression", "dim": 2, "context": 6, "task_covariance": "inverse"}
SOFTMAX = {"layers": 2, "width": 4, "heads": 2, "hidden": 6, "init_std": 0.3}
LSA = {"layers": 2, "width": 4, "heads": 2, "hidden": 0, "attention": "linear", "norm": "none"}


def plan_of(make_plan: Any, settings: dict[str, Any], **more: Any) -> TrainingPlan:
    train = {"estimator": "sampled", "steps_per_batch": 1, "clip": 1.0} | more.pop("train", {})
    plan = make_plan(train=train, optimizer=(torch.optim.Adam, {"lr": 0.02}), **more)
    config = {"task": TASK, "model": {"_target_": "icl.models.Encoder", **settings}}
    return dataclasses.replace(plan, model=Encoder(2, **settings), config=config)


@pytest.mark.parametrize("settings", [SOFTMAX, LSA | {"init_std": 0.3}], ids=["softmax", "lsa"])
def test_an_ensemble_is_its_seeds_and_goes_on_where_it_was_stopped(
    make_plan: Any, settings: dict[str, Any]
) -> None:
    seeds = (3, 0)
    whole = train_one(plan_of(make_plan, settings, seeds=seeds, name="whole")).record
    for r, seed in enumerate(seeds):
        alone = train_one(plan_of(make_plan, settings, seeds=(seed,), name=f"alone{seed}")).record
        for name in Encoder(2, **settings).parametrization.shapes():
            there, here = whole.weights[name][r], alone.weights[name][0]
            assert np.abs(there - here).max() <= 1e-6 * np.abs(here).max(), name
        assert np.abs(alone.weights["query"] - alone.weights["query_history"][:, 0]).max() > 1e-3

    with stopped_at(7):
        train_one(plan_of(make_plan, settings, seeds=seeds, name="stopped"))
    stopped = train_one(plan_of(make_plan, settings, seeds=seeds, name="stopped")).record
    assert stopped.run["resumed"] == 1
    assert all(np.array_equal(stopped.weights[name], whole.weights[name]) for name in whole.weights)


def test_a_run_is_restored_with_its_model(make_plan: Any) -> None:
    record = train_one(plan_of(make_plan, SOFTMAX)).record
    run = restored(record)
    run.model.float()
    assert run.transformer.parametrization.read_in.dtype == torch.float64
    run = restored(record)
    rng = np.random.default_rng(0)
    x, y, x_query = rng.standard_normal((4, 6, 2)), rng.standard_normal((4, 6)), rng.standard_normal((4, 2))
    found_RB = run.model(x, y, x_query)
    model = Encoder(2, **SOFTMAX)
    model.parametrization.load({name: torch.from_numpy(M) for name, M in run.matrices.items()})
    prompt = run.law.encode(*(torch.from_numpy(np.stack([t, t])) for t in (x, y, x_query)))
    assert torch.equal(found_RB, model.predict(prompt)) and found_RB[0].ne(found_RB[1]).all()
    steps = [step for step, _ in run.stored_models()]
    assert steps[0] == 0 and steps[-1] == 12
    labels = {name for name in record.metrics if name.startswith("gradient_norm_")}
    assert {"gradient_norm_read_in0", "gradient_norm_query1", "gradient_norm_gain1"} <= labels
    pictures = panels_of(run.matrices, None)
    assert set(pictures) == set(run.matrices) and len(pictures["query"]) == 2


def test_a_compiled_risk_trains_the_same_weights(make_plan: Any) -> None:
    """Compile by the backend that generates no code: what is traced is what inductor is given."""
    runs = [
        train_one(plan_of(make_plan, SOFTMAX, trainer={"compile": backend}, name=str(backend))).record
        for backend in (None, "aot_eager")
    ]
    plain, compiled = (run.weights["query"] for run in runs)
    assert np.abs(compiled - plain).max() <= 1e-6 * np.abs(plain).max()
    with pytest.raises(InputError, match=r"trainer\.compile=nvcc"):
        TrainerSettings(compile="nvcc")


def test_mixed_precision(make_plan: Any) -> None:
    """Train with products in bfloat16, of eight bits: near the run in float32, and not the same."""
    losses = []
    for precision in ("32-true", "bf16-mixed"):
        plan = plan_of(make_plan, SOFTMAX, trainer={"precision": precision}, name=precision)
        losses.append(np.array(train_one(plan).record.metrics["loss"]))
    gap = np.abs(losses[0] - losses[1])
    assert 0 < gap.max() <= 0.1 * np.abs(losses[0]).max()
