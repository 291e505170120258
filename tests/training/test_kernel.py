"""Tests of training through the compiled kernel: the same weights, and a run keeps what it began with."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from icl.errors import InputError
from icl.kernel import library
from icl.models import Full, SparseA, SparseAB
from icl.training import settings
from icl.training.settings import TrainerSettings
from tests.plans import MakePlan, stopped_at, train_one

needs_kernel = pytest.mark.skipif(library.why_none() is not None, reason=f"no kernel: {library.why_none()}")


FAMILIES = [
    lambda dim: SparseAB(dim, 3, 0.1),
    lambda dim: Full(dim, 2, 0.1),
    lambda dim: SparseA(dim, 3, 0.1, shared=True),
    lambda dim: SparseAB(dim, 3, 0.1, shared=True),
]


def plan_with(make_plan: MakePlan, kernel: str, name: str = "", **given: Any) -> Any:
    trainer = {"precision": "64-true", "accelerator": "cpu", "kernel": kernel}
    return make_plan(name=name or kernel, trainer=trainer, **given)


@needs_kernel
@pytest.mark.parametrize("family", FAMILIES)
def test_the_kernel_trains_the_same_weights(make_plan: MakePlan, family: Any) -> None:
    runs = {
        kernel: train_one(plan_with(make_plan, kernel, family=family)).record
        for kernel in ("tile", "eager", "auto")
    }
    assert [run.run["kernel"] for run in runs.values()] == ["tile", "eager", "tile"]
    for name, expected in runs["eager"].weights.items():
        if expected.dtype.kind == "f":
            scale = np.abs(expected).max()
            assert np.abs(runs["tile"].weights[name] - expected).max() <= 1e-6 * scale, name
            assert np.array_equal(runs["tile"].weights[name], runs["auto"].weights[name])


@needs_kernel
@pytest.mark.parametrize("coordinates", ["plain", "whitened"])
def test_lbfgs_steps_each_seed_by_the_kernel(make_plan: MakePlan, coordinates: str) -> None:
    options = {
        "optimizer": (torch.optim.LBFGS, {"lr": 1.0}),
        "train": {"clip": None, "steps": 4, "coordinates": coordinates},
    }
    runs = {
        k: train_one(plan_with(make_plan, k, k + coordinates, **options)).record for k in ("tile", "eager")
    }
    assert [run.run["kernel"] for run in runs.values()] == ["tile", "eager"]
    for name, expected in runs["eager"].weights.items():
        if expected.dtype.kind == "f":
            assert np.abs(runs["tile"].weights[name] - expected).max() <= 1e-6 * np.abs(expected).max(), name


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
    monkeypatch.setattr(library, "why_none", lambda: "it was not built")
    monkeypatch.setattr(settings, "why_none", lambda: "it was not built")
    assert train_one(plan_with(make_plan, "auto")).record.run["kernel"] == "eager"
    with pytest.raises(InputError, match=r"trainer\.kernel=tile: it was not built"):
        TrainerSettings(kernel="tile")


@needs_kernel
def test_what_the_kernel_cannot_do_is_refused_or_left_to_torch(make_plan: MakePlan) -> None:
    for wrong in ({"compile": "aot_eager"}, {"precision": "bf16-mixed"}):
        with pytest.raises(InputError, match=r"trainer\.kernel=tile: not with trainer\."):
            TrainerSettings(kernel="tile", **wrong)
    with pytest.raises(InputError, match=r"trainer\.kernel=tiles"):
        TrainerSettings(kernel="tiles")
    tokens = plan_with(make_plan, "auto", "tokens", path="tokens", train={"estimator": "sampled"})
    assert train_one(tokens).record.run["kernel"] == "eager"
