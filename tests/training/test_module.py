"""Tests of the module as a LightningModule: its trainer counts its steps, every hook fires, it predicts."""

import collections
import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from torch import Tensor

from icl import callbacks
from icl.callbacks import MetricCallback
from icl.models import LinearTransformer
from icl.random import generator
from icl.training.ensemble import Ensemble
from icl.training.plan import TrainingPlan
from tests.plans import QUIET, MakePlan, train_one

ADAM, LBFGS = torch.optim.Adam, torch.optim.LBFGS
HOOKS = [name for name in dir(pl.Callback) if name.startswith("on_")]


class Counts(pl.Callback):
    """A callback that counts every hook there is, and the trainer's steps at ours."""

    def __init__(self) -> None:
        self.calls: collections.Counter[str] = collections.Counter()
        self.global_steps: list[int] = []

    def __getattribute__(self, name: str) -> Any:
        if name in HOOKS:
            self.calls[name] += 1
        return super().__getattribute__(name)

    def on_weights(self, trainer: pl.Trainer, pl_module: Any, step: int) -> None:
        self.calls["on_weights"] += 1
        assert pl_module.snapshot.step == step == trainer.global_step

    def on_step_end(self, trainer: pl.Trainer, pl_module: Any, step: int) -> None:
        self.global_steps.append(trainer.global_step)


def fit(plan: TrainingPlan, *others: pl.Callback) -> tuple[Any, pl.Trainer]:
    """Fit the module under a plain trainer, without a run."""
    module = Ensemble(plan).build_module()
    common = {"callbacks": list(others), "logger": False, "precision": plan.trainer.precision}
    trainer = pl.Trainer(**common, **QUIET)
    trainer.fit(module)
    return module, trainer


def test_every_hook_of_every_step(make_plan: MakePlan) -> None:
    counts = Counts()
    _, trainer = fit(make_plan(), counts)
    assert trainer.global_step == 12 and counts.global_steps == list(range(1, 13))
    for hook in ("on_before_backward", "on_after_backward", "on_before_optimizer_step"):
        assert counts.calls[hook] == 12, hook
    assert counts.calls["on_weights"] == 13
    assert counts.calls["on_train_batch_start"] == counts.calls["on_train_batch_end"] == 3
    assert isinstance(trainer.optimizers[0], ADAM) and len(trainer.optimizers) == 1


def test_lbfgs_is_one_optimizer_whose_closures_are_seen(make_plan: MakePlan) -> None:
    counts = Counts()
    options = {"lr": 1.0, "max_iter": 3, "line_search_fn": "strong_wolfe"}
    _, trainer = fit(make_plan(optimizer=(LBFGS, options), train={"clip": None}), counts)
    assert trainer.global_step == 12 and counts.global_steps == list(range(1, 13))
    # A hook for each evaluation of a loss: at least one for each step of each of the two seeds.
    assert counts.calls["on_before_optimizer_step"] == counts.calls["on_after_backward"] >= 2 * 12


def test_callbacks_of_icl_cost_no_hook_of_lightnings_at_each_step() -> None:
    """Lightning passes over a hook that is no function, and enters a profile for every other."""
    hooks = ("on_before_backward", "on_after_backward", "on_before_optimizer_step")
    for name in callbacks.__all__:
        assert [getattr(getattr(callbacks, name), hook) for hook in hooks] == [None] * 3, name


def test_callbacks_see_the_gradient_before_it_is_clipped(make_plan: MakePlan) -> None:
    """A callback of icl may have Lightning's hooks, too."""
    norms: dict[str, list[float]] = {"callback": [], "step": []}

    def norm(module: Any) -> float:
        return float(torch.linalg.matrix_norm(module.trained["A"].grad).max())

    class Norms(callbacks.DistanceToSet):
        def on_before_optimizer_step(self, trainer: pl.Trainer, pl_module: Any, optimizer: Any) -> None:
            norms["callback"].append(norm(pl_module))

        def on_step_end(self, trainer: pl.Trainer, pl_module: Any, step: int) -> None:
            norms["step"].append(norm(pl_module))

    fit(make_plan(train={"clip": 1e-3}), Norms())
    assert len(norms["callback"]) == 12 and min(norms["callback"]) > 2e-3
    assert max(norms["step"]) == pytest.approx(1e-3, rel=1e-12)


@pytest.mark.parametrize("precision", ["32-true", "64-true"])
def test_forward_is_the_model_at_the_trained_weights(make_plan: MakePlan, precision: str) -> None:
    plan = make_plan(trainer={"precision": precision})
    module, _ = fit(plan)
    prompt = plan.law.gram_prompts([generator(seed, "check") for seed in plan.seeds], 7)
    found_RB = module(prompt).detach()
    family = plan.model.parametrization.sharing([M.double() for M in module.matrices().values()])
    expected_RB = LinearTransformer(family).predict(prompt).detach()
    assert found_RB.shape == (2, 7) and found_RB.dtype == module.trained_dtype
    bound = 200 * torch.finfo(module.trained_dtype).eps * float(expected_RB.abs().max())
    assert torch.allclose(found_RB.double(), expected_RB, rtol=0, atol=bound)


class Largest(MetricCallback):
    """A user's own column."""

    def measure(self, pl_module: Any, step: int) -> Mapping[str, Tensor]:
        return {"largest": torch.linalg.matrix_norm(pl_module.snapshot.matrices["A"], 2).amax(-1)}


def test_a_users_own_column(make_plan: MakePlan) -> None:
    record = train_one(make_plan(callbacks={"more": [Largest(steps=[0, 12])]})).record
    steps, seeds, column = (record.metrics[name] for name in ("step", "seed", "largest"))
    at = record.weights["history_steps"].tolist().index
    for step, seed, value in zip(steps, seeds, column, strict=True):
        if step not in (0, 12):
            assert value is None
            continue
        norm_L = np.linalg.norm(record.weights["A_history"][seed, at(step)], 2, axis=(-2, -1))
        assert value == pytest.approx(float(norm_L.max()), rel=1e-12)
    assert set(record.run["metrics"]["largest"]["by_seed"]) == {"0", "1"}


def test_a_record_has_its_last_numbers_whatever_its_callbacks(make_plan: MakePlan) -> None:
    bare = train_one(dataclasses.replace(make_plan(name="bare"), callbacks=())).record
    full = train_one(make_plan()).record
    for name in ("loss", "exact_risk", "dist_preconditioned", "dist_plain", "dist_plain_A1"):
        assert bare.run["metrics"][name] == full.run["metrics"][name], name
        assert None not in bare.run["metrics"][name]["by_seed"].values()


def test_a_run_that_another_callback_stops_is_no_record(make_plan: MakePlan) -> None:
    class Impatient(pl.Callback):
        def on_train_batch_end(self, trainer: pl.Trainer, *_: Any) -> None:
            trainer.should_stop = True

    with pytest.raises(RuntimeError, match=r"stopped before train\.steps"):
        train_one(make_plan(callbacks={"more": [Impatient()]}))
