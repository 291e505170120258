"""Tests of a device without float64, as Apple's GPU: all that leaves it is cast on the CPU."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from pytorch_lightning.strategies import SingleDeviceStrategy
from torch import Tensor
from torch.utils._pytree import tree_map

from icl.callbacks import WeightHeatmaps
from icl.errors import InputError
from icl.tasks.estimators import PopulationRisk
from icl.training.ensemble import Ensemble
from icl.training.loop import build_module
from icl.training.optimizers import OptimizerSpec
from icl.training.schedules import Constant
from icl.training.settings import TrainerSettings
from icl.training.stream import PromptStream
from tests.plans import stopped_at, train_one


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


def test_prompts_are_pinned_for_a_gpu(make_plan: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Assert it of every tensor of every set, by the thread that draws it."""
    plan, pinned = make_plan(), []
    stream = Ensemble.of_one(plan).stream(build_module(plan), 0)
    monkeypatch.setattr(Tensor, "pin_memory", lambda tensor: pinned.append(tensor.shape) or tensor)
    plain = [batch["draw"] for batch in stream]
    assert not pinned
    stream.pinned = True
    again = [batch["draw"] for batch in stream]
    assert pinned == [tensor.shape for draw in plain for tensor in draw.values()]
    assert all(torch.equal(a[name], b[name]) for a, b in zip(plain, again, strict=True) for name in a)


def test_population_on_a_device_says_what_it_costs(
    make_plan: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    for there in (False, True):
        module = build_module(make_plan(train={"estimator": "population", "batch": None}))
        if there:
            module_to_device(SimpleNamespace(model=module.float()))
        module.configure_optimizers()
        said = [line for line in caplog.messages if "train.estimator=population" in line]
        assert len(said) == there and all("every step copies the weights" in line for line in said)


def test_the_memory_asked_is_the_devices(
    monkeypatch: pytest.MonkeyPatch, make_plan: Callable[..., Any]
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda index=None: asked.append(index) or (1000, 10**15))
    plan = make_plan()
    trainers = [
        TrainerSettings(accelerator=name, devices=ids)
        for name, ids in (("cpu", 1), ("gpu", 1), ("cuda", [3]))
    ]
    assert [trainer.free_device_bytes() for trainer in trainers] == [None, 1000, 1000] and asked == [None, 3]
    settings = plan.train
    settings.validate_memory(plan.model, len(plan.seeds), trainers[0])
    with pytest.raises(InputError, match=r"train\.batch=\d+: one batch takes 0 GiB, this GPU has free 0"):
        settings.validate_memory(plan.model, len(plan.seeds), trainers[1])
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda index=None: (10**15, 10**15))
    settings.validate_memory(plan.model, len(plan.seeds), trainers[1])


def test_capturable_is_for_a_gpu() -> None:
    spec = OptimizerSpec(torch.optim.Adam, {"lr": 0.1, "capturable": True}, Constant())
    assert [options["capturable"] for options in spec.per_replica(2)] == [True, True]
    spec.validate_accelerator("cuda")
    with pytest.raises(InputError, match=r"optimizer\.capturable=true"):
        spec.validate_accelerator("cpu")


def test_cuda_graphs_are_told_where_a_step_begins(
    make_plan: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mode reaches torch.compile, and gradients of one step are gone before the next."""
    modes, marks, compiled = [], [], torch.compile
    monkeypatch.setattr(
        torch,
        "compile",
        lambda f, backend, mode: modes.append((backend, mode)) or compiled(f, backend="aot_eager"),
    )
    monkeypatch.setattr(torch.compiler, "cudagraph_mark_step_begin", lambda: marks.append(1))
    trainer = {"compile": "inductor", "compile_mode": "reduce-overhead"}
    found = train_one(make_plan(trainer=trainer)).record
    assert modes == [("inductor", "reduce-overhead")] and len(marks) == found.run["steps"]
    plain = train_one(make_plan(name="plain", trainer={"kernel": "eager"})).record
    np.testing.assert_allclose(found.weights["A"], plain.weights["A"], rtol=1e-6)
    for settings, key in (
        ({"compile_mode": "fast"}, "compile_mode=fast"),
        ({"compile_mode": "default"}, "is inductor's"),
    ):
        with pytest.raises(InputError, match=key):
            TrainerSettings(**settings)


@pytest.mark.parametrize("name", ["highest", "high", "medium"])
def test_the_precision_of_products_is_a_runs_own(
    make_plan: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    before, seen = torch.get_float32_matmul_precision(), set()
    draw = PromptStream.draw
    look = torch.get_float32_matmul_precision
    monkeypatch.setattr(PromptStream, "draw", lambda self, step: seen.add(look()) or draw(self, step))
    train_one(make_plan(trainer={"matmul_precision": name}))
    assert seen == {name} and look() == before
    with pytest.raises(InputError, match=r"trainer\.matmul_precision=tf32: must be"):
        TrainerSettings(matmul_precision="tf32")


ON_GPU = {
    "plain": ({}, 1e-6),
    "CUDA graphs": ({"compile": "inductor", "compile_mode": "reduce-overhead"}, 1e-6),
    "TF32": ({"precision": "32-true", "matmul_precision": "high"}, 2e-2),
}


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("name", ON_GPU)
def test_a_gpu_trains_the_weights_of_the_cpu(make_plan: Callable[..., Any], name: str) -> None:
    """And one that was interrupted those of one that was not, bit for bit."""
    trainer, bound = ON_GPU[name]
    on_gpu = {"accelerator": "gpu", **trainer}
    whole = train_one(make_plan(trainer=on_gpu, name="whole")).record
    on_cpu = train_one(make_plan(trainer={"kernel": "eager"}, name="cpu")).record
    scale = np.abs(on_cpu.weights["A"]).max()
    assert whole.run["device"].startswith("cuda")
    assert np.abs(whole.weights["A"] - on_cpu.weights["A"]).max() <= bound * scale
    with stopped_at(7):
        train_one(make_plan(trainer=on_gpu, name="stopped"))
    resumed = train_one(make_plan(trainer=on_gpu, name="stopped")).record
    assert np.array_equal(resumed.weights["A"], whole.weights["A"])
