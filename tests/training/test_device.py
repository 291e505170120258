"""Tests of a device without float64, as Apple's GPU: all that leaves it is cast on the CPU."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from pytorch_lightning.strategies import SingleDeviceStrategy
from torch import Tensor
from torch.utils._pytree import tree_map

from icl.callbacks import WeightHeatmaps
from icl.tasks.estimators import PopulationRisk
from icl.training.settings import TrainerSettings
from tests.training.conftest import train_one


class OnDevice(Tensor):
    """A tensor that computes, but never in float64 until it is on the CPU. Torch takes it for one of the
    meta device, which any build of torch has."""

    inner: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor) -> "OnDevice":
        layout = {"strides": inner.stride(), "storage_offset": inner.storage_offset()}
        made = Tensor._make_wrapper_subclass(cls, inner.size(), dtype=inner.dtype, device="meta", **layout)  # type: ignore[attr-defined]
        made.inner = inner
        return made  # type: ignore[no-any-return]

    @classmethod
    def __torch_dispatch__(cls, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        there = {k: v for k, v in (kwargs or {}).items() if k != "device"}
        inner_args, inner_kwargs = tree_map(_inner, (args, there))
        target = (kwargs or {}).get("device")
        if target is not None and torch.device(target).type == "cpu":
            copy = op(*inner_args, **{k: v for k, v in inner_kwargs.items() if k != "dtype"})
            if inner_kwargs.get("dtype", copy.dtype) == torch.float64 != copy.dtype:
                raise TypeError("the device has no float64; call .cpu() first")
            return copy
        return tree_map(_outer, op(*inner_args, **inner_kwargs))


def _inner(value: Any) -> Any:
    return value.inner if isinstance(value, OnDevice) else value


def _outer(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return value
    if value.dtype == torch.float64:
        raise TypeError("the device has no float64; call .cpu() first")
    return OnDevice(value)


def moved(tensor: Tensor) -> Tensor:
    """Return the tensor moved to the device."""
    return OnDevice(tensor.detach()) if tensor.is_floating_point() else tensor


def module_to_device(strategy: Any) -> None:
    there: dict[Tensor, torch.nn.Parameter] = {}  # the trained ones are the model's own
    for owner in strategy.model.modules():
        for name, tensor in owner._parameters.items():
            owner._parameters[name] = there.setdefault(tensor, torch.nn.Parameter(moved(tensor)))
        for name, tensor in owner._buffers.items():
            owner._buffers[name] = moved(tensor)


def batch_to_device(strategy: Any, batch: dict[str, Any], *_: Any, **__: Any) -> dict[str, Any]:
    return {**batch, "draw": {name: moved(tensor) for name, tensor in batch["draw"].items()}}


@pytest.fixture
def device() -> Iterator[pytest.MonkeyPatch]:
    """Put the device in the CPU's place, until it is undone."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(SingleDeviceStrategy, "model_to_device", module_to_device)
        patched.setattr(SingleDeviceStrategy, "batch_to_device", batch_to_device)
        yield patched


def test_the_device_refuses() -> None:
    tensor = moved(torch.ones(2))
    with pytest.raises(TypeError, match="no float64"):
        tensor.double()
    with pytest.raises(TypeError, match="no float64"):
        tensor.to("cpu", torch.float64)
    assert tensor.cpu().double().tolist() == [1, 1]


@pytest.mark.parametrize("estimator", ["expected", "tilted"])
def test_a_run_on_it(make_plan: Callable[..., Any], device: pytest.MonkeyPatch, estimator: str) -> None:
    """Compare with the CPU to the rounding of 32 bits, though not through the same kernels."""
    train = {"estimator": estimator, "clip": None}
    sgd = torch.optim.SGD, {"lr": 0.02}
    plan = make_plan(train=train, optimizer=sgd, trainer={"precision": "32-true"})
    found = train_one(plan).record
    device.undo()
    wanted = train_one(make_plan(train=train, optimizer=sgd, name="on the CPU")).record
    np.testing.assert_allclose(found.weights["A"], wanted.weights["A"], rtol=1e-3)


def test_the_population_risk_of_weights_on_it(make_plan: Callable[..., Any]) -> None:
    plan = make_plan()
    model, risk = plan.model, PopulationRisk(plan.law.exact_risk(plan.model))
    model.parametrization.initialise(plan.seeds, torch.float32)
    there = model.on(model.parametrization.sharing([moved(M) for M in model.parametrization.parameters()]))
    assert torch.equal(risk.risk(there, {}), risk.risk(model, {}).detach())


def test_pictures_of_any_module() -> None:
    module = pl.LightningModule()
    drawn = WeightHeatmaps(matrices=lambda _: {"W": moved(torch.eye(2))}).panels(module)
    assert [name.partition("/")[0] for name in drawn] == ["W"]


def test_auto_is_cuda_or_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Choose Apple's GPU only where it is requested."""
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    for has_cuda, chosen in ((False, "cpu"), (True, "cuda")):
        monkeypatch.setattr(torch.cuda, "is_available", lambda there=has_cuda: there)
        assert TrainerSettings(accelerator="auto").chosen_accelerator == chosen
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert TrainerSettings(accelerator="auto", precision="64-true").dtype == torch.float64
    for accelerator in ("mps", "gpu"):
        assert TrainerSettings(accelerator=accelerator).chosen_accelerator == "mps"
