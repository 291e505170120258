"""Tests of the module as a LightningModule: its trainer counts its steps, every hook fires, it predicts."""

import collections
import dataclasses
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from torch import Tensor
from torch.utils.data import DataLoader

from icl.callbacks import DistanceToSet, MetricCallback
from icl.errors import Interrupted
from icl.models import LinearTransformer
from icl.random import generator
from icl.training import loop
from icl.training.module import EACH_STEP
from icl.training.stream import PromptStream
from tests.plans import QUIET, stopped_at, train_one

ADAM, LBFGS = torch.optim.Adam, torch.optim.LBFGS


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
        self.calls["on_step_end"] += 1
        self.global_steps.append(trainer.global_step)


HOOKS = [name for name in dir(pl.Callback) if name.startswith("on_")]


def fit(
    plan: loop.TrainingPlan, counts: Counts, others: Sequence[pl.Callback] = (), **options: Any
) -> tuple[Any, pl.Trainer]:
    """Fit the module under a stock trainer, without a run."""
    module = loop.build_module(plan)
    estimator = loop.make_estimator(plan.train.estimator, plan.model, plan.law)
    train = plan.train
    stream = PromptStream(
        estimator, plan.seeds, train.batch, train.steps_per_batch, train.steps, 0, plan.trainer.dtype
    )
    common = {"callbacks": [counts, *others], "logger": False, "precision": plan.trainer.precision}
    trainer = pl.Trainer(**common, **QUIET, **options)
    trainer.fit(module, DataLoader(stream, batch_size=None))
    return module, trainer


def test_every_hook_of_every_step(make_plan: Callable[..., Any]) -> None:
    counts = Counts()
    _, trainer = fit(make_plan(), counts)
    assert trainer.global_step == 12 and counts.global_steps == list(range(1, 13))
    for hook in ("on_before_backward", "on_after_backward", "on_before_optimizer_step", "on_step_end"):
        assert counts.calls[hook] == 12, hook
    assert counts.calls["on_weights"] == 13
    assert counts.calls["on_train_batch_start"] == counts.calls["on_train_batch_end"] == 3
    assert isinstance(trainer.optimizers[0], ADAM) and len(trainer.optimizers) == 1


def test_hooks_that_nobody_fills_are_passed_over(make_plan: Callable[..., Any]) -> None:
    """Skip hooks that no callback fills; those that a class or an instance has are called at each step."""
    measure = DistanceToSet()

    class OnlyOne(pl.Callback):
        def __init__(self) -> None:
            self.seen: list[str] = []
            self.on_after_backward = lambda *_: self.seen.append("after")  # type: ignore[method-assign]

        def on_before_optimizer_step(self, *_: Any) -> None:
            self.seen.append("before")

    class Own(DistanceToSet):
        seen = 0

        def on_before_optimizer_step(self, *_: Any) -> None:
            self.seen += 1

    mine, own = OnlyOne(), Own()
    module, _ = fit(make_plan(), Counts(), others=[measure, mine, own])
    assert mine.seen == ["after", "before"] * 12 and own.seen == 12
    passed_over = [
        (module, ["on_before_backward", "on_after_backward"]),
        (measure, ["on_before_backward", "on_after_backward", "on_before_optimizer_step"]),
        (mine, ["on_before_backward"]),
    ]
    for owner, names in passed_over:
        assert [name for name in EACH_STEP if getattr(owner, name) is None] == names


def test_lbfgs_is_one_optimizer_whose_closures_are_seen(make_plan: Callable[..., Any]) -> None:
    counts = Counts()
    options = {"lr": 1.0, "max_iter": 3, "line_search_fn": "strong_wolfe"}
    _, trainer = fit(make_plan(optimizer=(LBFGS, options), train={"clip": None}), counts)
    assert trainer.global_step == 12 and counts.global_steps == list(range(1, 13))
    # A hook for each evaluation of a loss: at least one for each step of each of the two seeds.
    assert counts.calls["on_before_optimizer_step"] == counts.calls["on_after_backward"] >= 2 * 12


def test_callbacks_see_the_gradient_before_it_is_clipped(make_plan: Callable[..., Any]) -> None:
    norms: dict[str, list[float]] = {"callback": [], "step": []}

    class Norms(Counts):
        def on_before_optimizer_step(self, trainer: pl.Trainer, pl_module: Any, optimizer: Any) -> None:
            norms["callback"].append(float(torch.linalg.matrix_norm(pl_module.trained["A"].grad).max()))

        def on_step_end(self, trainer: pl.Trainer, pl_module: Any, step: int) -> None:
            norms["step"].append(float(torch.linalg.matrix_norm(pl_module.trained["A"].grad).max()))

    fit(make_plan(train={"clip": 1e-3}), Norms())
    assert min(norms["callback"]) > 2e-3
    assert max(norms["step"]) == pytest.approx(1e-3, rel=1e-12)


@pytest.mark.parametrize("precision", ["32-true", "64-true"])
def test_forward_is_the_model_at_the_trained_weights(make_plan: Callable[..., Any], precision: str) -> None:
    plan = make_plan(trainer={"precision": precision})
    module, _ = fit(plan, Counts())
    prompt = plan.law.gram_prompts([generator(seed, "check") for seed in plan.seeds], 7)
    found_RB = module(prompt).detach()
    family = plan.model.parametrization.sharing([M.double() for M in module.matrices().values()])
    expected_RB = LinearTransformer(family).predict(prompt).detach()
    eps = torch.finfo(module.trained_dtype).eps
    assert found_RB.shape == (2, 7) and found_RB.dtype == module.trained_dtype
    bound = 200 * eps * float(expected_RB.abs().max())
    assert torch.allclose(found_RB.double(), expected_RB, rtol=0, atol=bound)


def test_a_resumed_run_goes_on_counting(make_plan: Callable[..., Any]) -> None:
    with stopped_at(7) as first:
        train_one(make_plan())
    with stopped_at(12) as rest:  # as good as done
        train_one(make_plan())
        raise Interrupted(signal.SIGTERM)
    assert first + rest == [(step, step) for step in range(1, 13)]


class Largest(MetricCallback):
    """A callback with a user's own column."""

    def columns(self, pl_module: Any) -> list[str]:
        return ["largest"]

    def measure(self, pl_module: Any, step: int) -> Mapping[str, Tensor]:
        return {"largest": torch.linalg.matrix_norm(pl_module.snapshot.matrices["A"], 2).amax(-1)}


def test_a_users_own_column(make_plan: Any) -> None:
    record = train_one(make_plan(callbacks={"more": [Largest(steps=[0, 12])]})).record
    steps, seeds, column = (record.metrics[name] for name in ("step", "seed", "largest"))
    for step, seed, value in zip(steps, seeds, column, strict=True):
        if step not in (0, 12):
            assert value is None
            continue
        A_LDD = record.weights["A_history"][seed, record.weights["history_steps"].tolist().index(step)]
        assert value == pytest.approx(float(np.linalg.norm(A_LDD, 2, axis=(-2, -1)).max()), rel=1e-12)
    assert set(record.run["metrics"]["largest"]["by_seed"]) == {"0", "1"}


def test_a_record_has_its_last_numbers_whoever_was_listening(make_plan: Callable[..., Any]) -> None:
    """Keep the metrics at the end whatever the callbacks, whose columns come and go with them."""
    plan = make_plan(name="bare")
    bare = train_one(dataclasses.replace(plan, callbacks=())).record
    full = train_one(make_plan()).record
    assert set(bare.metrics) == {"step", "seed", "loss", "lr"}
    assert {"dist_preconditioned", "exact_risk"} <= set(full.metrics)
    for name in ("loss", "exact_risk", "dist_preconditioned", "dist_plain", "dist_plain_A1"):
        assert bare.run["metrics"][name] == full.run["metrics"][name], name
        assert None not in bare.run["metrics"][name]["by_seed"].values()


def test_a_run_that_is_stopped_early_is_no_record(make_plan: Callable[..., Any]) -> None:
    class Impatient(pl.Callback):
        def on_train_batch_end(self, trainer: pl.Trainer, *_: Any) -> None:
            trainer.should_stop = True

    with pytest.raises(RuntimeError, match=r"stopped before train\.steps"):
        train_one(make_plan(callbacks={"more": [Impatient()]}))
