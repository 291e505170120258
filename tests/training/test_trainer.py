"""Tests of the settings of a run: what is refused, what a trainer is handed, callbacks of Lightning's own."""

from typing import Any

import pytest
from pytorch_lightning.callbacks import EarlyStopping, ModelCheckpoint, TQDMProgressBar
from pytorch_lightning.profilers import SimpleProfiler

from icl.config.objects import target_class
from icl.errors import InputError
from icl.training.build import build_callbacks, build_trainer_settings
from icl.training.trainer import LoopConfig, make_trainer

NODE = {"accelerator": "cpu", "precision": "64-true", "devices": 1, "threads": None}
TRAIN: list[tuple[dict[str, Any], str]] = [
    ({"steps": 10**12}, r"train\.steps=1000000000000: must be an integer from 1 to 1000000000"),
    ({"steps": 0}, r"train\.steps=0: must be an integer"),
    ({"batch": 0}, r"train\.batch=0"),
    ({"batch": 1.5}, r"train\.batch=1\.5"),
    ({"steps_per_batch": 0}, r"train\.steps_per_batch=0"),
    ({"log_every": -1}, r"train\.log_every=-1"),
    ({"estimator": 3}, r"train\.estimator=3: must be a name, such as sampled"),
    ({"estimator": "population", "batch": 5}, r"train\.batch=5: must be null: train\.estimator=popul"),
    ({"batch": None}, r"train\.batch=None: must be an integer of at least 1"),
    *(({"clip": clip}, r"train\.clip=") for clip in (0, -1.0, [0.1], "tight", [0.1, 0.0])),
]
TRAINER: list[tuple[dict[str, Any], str]] = [
    ({"accelerator": "tpu"}, r"trainer\.accelerator=tpu: must be one of auto, cpu, gpu"),
    ({"precision": "16-mixed"}, r"trainer\.precision=16-mixed: must be one of 32-true, 64-true"),
    ({"threads": 0}, r"trainer\.threads=0"),
    ({"max_epochs": 3}, r"train\.steps"),
    ({"logger": False}, r"trainer\.logger: not here: set logger instead"),
    ({"devices": 0}, r"trainer\.devices=0: must be a number of at least 1, or a list"),
    ({"devices": 10**14}, r"trainer\.devices=10+: must be an integer from 1 to 4096"),
    ({"devices": "auto"}, r"trainer\.devices=auto: must be a number"),
    ({"num_nodes": 0}, r"trainer\.num_nodes=0: must be"),
    ({"strategy": "fsdp"}, r"trainer\.strategy=fsdp: must be one of auto, ddp"),
    ({"detect_anomly": True}, r"trainer\.detect_anomly: pl\.Trainer has no such option; did you mean"),
    ({"profiler": "slow"}, "trainer: "),
]


@pytest.mark.parametrize(("changes", "message"), TRAIN)
def test_refused_of_train(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        LoopConfig(**({"steps": 1, "batch": 1} | changes)).clip_for(2)


@pytest.mark.parametrize(("more", "message"), TRAINER)
def test_refused_of_trainer(more: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        build_trainer_settings(NODE | more)


@pytest.mark.parametrize(("clip", "found"), [(None, None), (0.5, [0.5, 0.5]), ([0.5, 1], [0.5, 1.0])])
def test_clip_per_replica(clip: Any, found: Any) -> None:
    assert LoopConfig(1, 1, clip=clip).clip_for(2) == found


def test_options_are_handed_to_the_trainer() -> None:
    profiler = {"_target_": "pytorch_lightning.profilers.SimpleProfiler"}
    more: dict[str, Any] = {"detect_anomaly": True, "log_every_n_steps": 7, "profiler": profiler}
    trainer = make_trainer(build_trainer_settings(NODE | more))
    assert (trainer._detect_anomaly, trainer.log_every_n_steps) == (True, 7)
    assert isinstance(trainer.profiler, SimpleProfiler) and trainer.precision == "64-true"
    plain = make_trainer(build_trainer_settings(NODE))
    assert (plain._detect_anomaly, plain.max_epochs, plain.num_devices) == (False, 1, 1)


def test_lightnings_own_callbacks_bring_what_they_need() -> None:
    nodes = {
        "bar": {"_target_": "pytorch_lightning.callbacks.TQDMProgressBar", "refresh_rate": 5},
        "off": None,
        "best": {"_target_": "pytorch_lightning.callbacks.ModelCheckpoint", "dirpath": "somewhere"},
    }
    found = build_callbacks(nodes)
    assert [type(callback) for callback in found] == [TQDMProgressBar, ModelCheckpoint]
    trainer = make_trainer(build_trainer_settings(NODE), found)
    assert set(found) <= set(trainer.callbacks)
    plain = make_trainer(build_trainer_settings(NODE)).callbacks
    assert not any(isinstance(callback, TQDMProgressBar | ModelCheckpoint) for callback in plain)


def test_lightnings_other_name() -> None:
    """Give the classes that our trainer knows, whether or not lightning is installed."""
    assert target_class("callbacks.stop", "lightning.pytorch.callbacks.EarlyStopping") is EarlyStopping
    with pytest.raises(ValueError, match="cannot be imported") as refused:
        target_class("callbacks.stop", "lightning.pytorch.callbacks.Stopping")
    assert len(str(refused.value).splitlines()) == 1
