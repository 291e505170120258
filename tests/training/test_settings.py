from typing import Any

import pytest
import torch

from icl.errors import InputError
from icl.training.settings import TrainerSettings, TrainSettings

TRAIN: list[tuple[dict[str, Any], str]] = [
    ({"steps": 10**12}, r"train\.log_every=10: makes 100000000000 rows of metrics, 1000000 at most"),
    ({"steps": 0}, r"train\.steps=0: must be an integer of at least 1"),
    ({"batch": 0}, r"train\.batch=0"),
    ({"batch": 1.5}, r"train\.batch=1\.5"),
    ({"steps_per_batch": 0}, r"train\.steps_per_batch=0"),
    ({"log_every": -1}, r"train\.log_every=-1"),
    ({"estimator": 3}, r"train\.estimator=3: must be a name, such as sampled"),
    ({"estimator": "population", "batch": 5}, r"train\.batch=5: must be null: train\.estimator=popul"),
    ({"batch": None}, r"train\.batch=None: must be an integer of at least 1"),
]


@pytest.mark.parametrize(("changes", "message"), TRAIN)
def test_train(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        TrainSettings(**({"steps": 1, "batch": 1} | changes))


@pytest.mark.parametrize(("clip", "found"), [(None, None), (0.5, [0.5, 0.5]), ([0.5, 1], [0.5, 1.0])])
def test_clip_per_replica(clip: Any, found: Any) -> None:
    assert TrainSettings(1, 1, clip=clip).clip_for(2) == found


@pytest.mark.parametrize("clip", [0, -1.0, [0.1], "tight", [0.1, 0.0]])
def test_impossible_clips(clip: Any) -> None:
    with pytest.raises(InputError, match=r"train\.clip="):
        TrainSettings(1, 1, clip=clip).clip_for(2)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"accelerator": "tpu"}, r"trainer\.accelerator=tpu: must be one of auto, cpu, gpu"),
        ({"precision": "16-mixed"}, r"trainer\.precision=16-mixed: must be one of 32-true, 64-true"),
        ({"devices": -1}, r"trainer\.devices=-1: must be a number"),
        ({"devices": 10**14}, r"trainer\.devices=10+: must be an integer from 1 to 4096"),
        ({"threads": 0}, r"trainer\.threads=0"),
    ],
)
def test_trainer(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        TrainerSettings(**settings)


def test_a_gpu_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for accelerator in ("gpu", "cuda"):
        with pytest.raises(
            InputError, match=f"trainer.accelerator={accelerator}: no such device here; use auto or cpu"
        ):
            TrainerSettings(accelerator=accelerator)


def test_apples_gpu_has_no_float64(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for accelerator in ("mps", "gpu"):
        with pytest.raises(InputError, match=r"trainer\.precision=64-true: Apple's GPU has no float64"):
            TrainerSettings(accelerator=accelerator, precision="64-true")
        assert TrainerSettings(accelerator=accelerator).dtype == torch.float32
    assert TrainerSettings(accelerator="cpu", precision="64-true").dtype == torch.float64
