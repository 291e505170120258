"""Tests of where a run trains: which device, how much of its memory, and what only a GPU does."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from icl.errors import InputError
from icl.training.ensemble import Ensemble
from icl.training.trainer import TrainerConfig
from tests.plans import stopped_at, train_one


def test_auto_is_cuda_or_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Choose Apple's GPU, which has no float64, only where it is requested."""
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    for has_cuda, chosen in ((True, "cuda"), (False, "cpu")):
        monkeypatch.setattr(torch.cuda, "is_available", lambda there=has_cuda: there)
        assert TrainerConfig(accelerator="auto", precision="64-true").chosen_accelerator == chosen
    for accelerator in ("mps", "gpu"):
        assert TrainerConfig(accelerator=accelerator).chosen_accelerator == "mps"
        with pytest.raises(InputError, match=r"trainer\.precision=64-true: Apple's GPU has no float64"):
            TrainerConfig(accelerator=accelerator, precision="64-true")


@pytest.mark.parametrize("accelerator", ["gpu", "cuda"])
def test_a_gpu_that_is_not_there(monkeypatch: pytest.MonkeyPatch, accelerator: str) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InputError, match=f"trainer.accelerator={accelerator}: no such device here; use auto"):
        TrainerConfig(accelerator=accelerator)


def test_prompts_are_pinned_for_a_gpu(make_plan: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Assert it of every tensor of every set, by the thread that draws it."""
    pinned: list[Any] = []
    stream = Ensemble(make_plan()).build_module().prompts()
    monkeypatch.setattr(Tensor, "pin_memory", lambda tensor: pinned.append(tensor.shape) or tensor)
    plain = [batch.draw for batch in stream]
    assert not pinned
    stream.pinned = True
    again = [batch.draw for batch in stream]
    assert pinned == [tensor.shape for draw in plain for tensor in draw.values()]
    assert all(torch.equal(a[name], b[name]) for a, b in zip(plain, again, strict=True) for name in a)


def test_the_memory_asked_is_the_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda index=None: asked.append(index) or (1000, 10**15))
    places = (("cpu", 1), ("gpu", 1), ("cuda", [3]))
    cpu, gpu, third = [TrainerConfig(accelerator=name, devices=ids) for name, ids in places]
    assert [t.free_device_bytes() for t in (cpu, gpu, third)] == [None, 1000, 1000] and asked == [None, 3]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_gpu_trains_the_weights_of_the_cpu(make_plan: Callable[..., Any]) -> None:
    """And one that was interrupted those of one that was not, bit for bit."""
    on_gpu = {"accelerator": "gpu"}
    whole = train_one(make_plan(trainer=on_gpu, name="whole")).record
    on_cpu = train_one(make_plan(trainer={"kernel": "eager"}, name="cpu")).record
    assert whole.run["device"].startswith("cuda")
    np.testing.assert_allclose(whole.A, on_cpu.A, rtol=0, atol=1e-6 * np.abs(on_cpu.A).max())
    with stopped_at(7):
        train_one(make_plan(trainer=on_gpu, name="stopped"))
    resumed = train_one(make_plan(trainer=on_gpu, name="stopped")).record
    assert np.array_equal(resumed.A, whole.A)
