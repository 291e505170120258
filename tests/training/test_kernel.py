"""Tests of training through the compiled kernel: the same weights, and a run keeps what it began with."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from icl.errors import InputError
from icl.kernel import library
from icl.models import Full, SparseA, SparseAB
from icl.training import trainer
from icl.training.trainer import TrainerConfig
from tests.plans import MakePlan, stopped_at, train_one

needs_kernel = pytest.mark.skipif(library.why_none() is not None, reason=f"no kernel: {library.why_none()}")
LBFGS = {"optimizer": (torch.optim.LBFGS, {"lr": 1.0}), "train": {"clip": None, "steps": 4}}
WHITE = LBFGS | {"train": {"clip": None, "steps": 4, "coordinates": "whitened"}}
PLANS: dict[str, dict[str, Any]] = {
    "sparse_ab": {"family": lambda dim: SparseAB(dim, 3, 0.1)},
    "full": {"family": lambda dim: Full(dim, 2, 0.1)},
    "shared": {"family": lambda dim: SparseA(dim, 3, 0.1, shared=True)},
    "L-BFGS, seed by seed": LBFGS,
    "L-BFGS, whitened": WHITE,
}


def plan_with(make_plan: MakePlan, kernel: str, name: str = "", **given: Any) -> Any:
    return make_plan(name=name or kernel, trainer={"precision": "64-true", "kernel": kernel}, **given)


@needs_kernel
@pytest.mark.parametrize("given", PLANS.values(), ids=PLANS)
def test_the_kernel_trains_the_same_weights(make_plan: MakePlan, given: dict[str, Any]) -> None:
    kernels = ("tile", "eager", "auto")
    tile, eager, auto = (train_one(plan_with(make_plan, kernel, **given)).record for kernel in kernels)
    assert [run.run["kernel"] for run in (tile, eager, auto)] == ["tile", "eager", "tile"]
    for name, expected in eager.weights.items():
        if expected.dtype.kind == "f":
            assert np.abs(tile.weights[name] - expected).max() <= 1e-6 * np.abs(expected).max(), name
            assert np.array_equal(tile.weights[name], auto.weights[name])


@needs_kernel
@pytest.mark.parametrize("begun", ["tile", "eager"])
def test_a_resumed_run_stays_on_the_kernel_it_began_with(make_plan: MakePlan, begun: str) -> None:
    other = {"tile": "eager", "eager": "tile"}[begun]
    whole = train_one(plan_with(make_plan, begun, "whole")).record
    plan = plan_with(make_plan, begun, "cut")
    with stopped_at(7):
        train_one(plan)
    again = train_one(replace(plan_with(make_plan, other, "cut"), fingerprint=plan.fingerprint)).record
    assert again.run["kernel"] == begun
    assert all(np.array_equal(whole.weights[name], again.weights[name]) for name in whole.weights)


def test_without_a_kernel_auto_is_eager_and_tile_is_refused(
    make_plan: MakePlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (library, trainer):
        monkeypatch.setattr(module, "why_none", lambda: "it was not built")
    assert train_one(plan_with(make_plan, "auto")).record.run["kernel"] == "eager"
    for kernel, words in (("tile", "tile: it was not built"), ("tiles", "tiles: must be one of")):
        with pytest.raises(InputError, match=f"trainer.kernel={words}"):
            TrainerConfig(kernel=kernel)


def test_what_the_kernel_cannot_do_is_left_to_torch(make_plan: MakePlan) -> None:
    tokens = plan_with(make_plan, "auto", "tokens", path="tokens", train={"estimator": "sampled"})
    assert train_one(tokens).record.run["kernel"] == "eager"
